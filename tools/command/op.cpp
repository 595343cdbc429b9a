// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <vlmest/analysis/dram_traffic.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/json/op.hpp>
#include <vlmest/json/parse.hpp>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "output/json_document.hpp"
#include "output/table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

struct OpOptions {
  std::string file = "-";
  std::string device = "h200-sxm";
  Output output;
};

int op(const OpOptions& o) {
  const Device device = find_device(o.device);
  const std::string where = o.file == "-" ? "standard input" : o.file;
  nlohmann::json list = json::parse(read_file(o.file), where);
  if (!list.is_array()) list = nlohmann::json::array({list});
  auto out = nlohmann::ordered_json::array();
  Table t{.head = {"op", "time", "FLOPs", "read", "written", "output", "workspace", "intensity", "bound"}, .rows = {}};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json::SingleOp s = json::read_op(list[i], where + "[" + std::to_string(i) + "]", device.sm);
    const Cost c = cost(s.op);
    const Work w = work(s.op, device, Operands::from_dram);
    const DramTraffic dram = dram_traffic(s.op, device);
    auto entry = nlohmann::ordered_json::object();
    for (const auto& [key, value] : list[i].items()) entry[key] = value;
    entry["time_us"] = significant(w.time.us());
    entry["roofline_us"] = significant(w.roofline.us());
    entry["flops"] = c.flops.value();
    entry["bytes_read"] = c.read.value();
    entry["bytes_written"] = c.written.value();
    entry["dram_read_bytes"] = dram.read.value();
    entry["dram_written_bytes"] = dram.written.value();
    entry["output_bytes"] = s.outputs.value();
    entry["workspace_bytes"] = c.workspace.value();
    entry["peak_bytes"] = s.peak.value();
    entry["intensity"] = intensity(c);
    entry["bound"] = std::string(name(bound(w)));
    t.rows.push_back({list[i]["op"].get<std::string>(), show(w.time), show_count(c.flops.value()), show(c.read),
                      show(c.written), show(s.outputs), show(c.workspace),
                      std::to_string(static_cast<std::int64_t>(intensity(c) + 0.5)), std::string(name(bound(w)))});
    out.push_back(std::move(entry));
  }
  switch (o.output.format) {
    case Format::text:  // a list in, the same list out
    case Format::json: o.output.write(json_document(out)); break;
    case Format::markdown: o.output.write(markdown(t)); break;
    case Format::csv: o.output.write(csv(t)); break;
  }
  return Exit::done;
}

}  // namespace

void add_op(CLI::App& app, Action& action) {
  auto o = std::make_shared<OpOptions>();
  CLI::App* sub = app.add_subcommand("op", "cost of single operations: a JSON list in, the same list with costs out");
  sub->add_option("file", o->file, "the list, or - for standard input [-]")->type_name("FILE");
  sub->add_option("--device", o->device, "a shipped device or a file [h200-sxm]")->type_name("NAME|FILE");
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    o->output.resolve(*sub);
    action = [o] { return op(*o); };
  });
}

}  // namespace vlmest::tool
