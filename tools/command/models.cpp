// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vlmest/analysis/params.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "args.hpp"
#include "catalogue.hpp"
#include "command.hpp"
#include "files.hpp"
#include "output/json_document.hpp"
#include "output/table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

void write(const Output& o, const Table& t, nlohmann::ordered_json list) {
  switch (o.format) {
    case Format::json: o.write(json_document({{"schema_version", 1}, {"items", std::move(list)}})); break;
    case Format::markdown: o.write(markdown(t)); break;
    case Format::csv: o.write(csv(t)); break;
    case Format::text: o.write(text(t)); break;
  }
}

int models(const Output& o) {
  Table t{.head = {"name", "family", "params", "vision", "audio", "projector", "language", "Hugging Face id"},
          .rows = {},
          .left = 2};
  auto list = nlohmann::ordered_json::array();
  for (const ShippedFile& f : catalogue("vlm")) {
    const std::string& name = f.name;
    const Vlm vlm = find_model(f.file.string());
    Builder b;
    const Plan plan;
    Context c{b, plan, stack_of(plan)};
    declare_parameters(c, vlm);
    const Parameters p = parameters(b.graph);
    t.rows.push_back({name, vlm.type, show_count(p.total().value()), show_count(p.vision.value()),
                      show_count(p.audio.value()), show_count(p.projector.value()), show_count(p.language.value()),
                      f.aliases.empty() ? "-" : f.aliases.front()});
    list.push_back({{"name", name}, {"family", vlm.type}, {"params", p.total().value()}});
    if (!f.aliases.empty()) list.back()["id"] = f.aliases.front();
  }
  write(o, t, std::move(list));
  return Exit::done;
}

int devices(const Output& o) {
  Table t{.head = {"name", "product", "memory", "GB/s", "bf16 TFLOP/s", "fp16 TFLOP/s", "fp32 TFLOP/s", "aliases"},
          .rows = {},
          .left = 2};
  auto list = nlohmann::ordered_json::array();
  for (const ShippedFile& f : catalogue("device")) {
    const std::string& name = f.name;
    const Device d = find_device(f.file.string());
    const auto tera = [](FlopRate r) {
      return r.value == 0 ? std::string("-") : std::to_string(static_cast<std::int64_t>(r.value / 1e12 + 0.5));
    };
    t.rows.push_back({name, d.product, show(d.memory_bytes),
                      std::to_string(static_cast<std::int64_t>(d.dram.value / 1e9 + 0.5)), tera(d.peaks.bf16),
                      tera(d.peaks.fp16), tera(d.peaks.fp32),
                      f.aliases.empty() ? "-" : fmt::format("{}", fmt::join(f.aliases, " "))});
    list.push_back({{"name", name},
                    {"product", d.product},
                    {"memory_bytes", d.memory_bytes.value()},
                    {"usable_bytes", d.usable_bytes.value()},
                    {"aliases", f.aliases}});
  }
  write(o, t, std::move(list));
  return Exit::done;
}

void add_list(CLI::App& app, Action& action, const char* name, const char* help, int (*run)(const Output&)) {
  auto o = std::make_shared<Output>();
  CLI::App* sub = app.add_subcommand(name, help);
  o->add_to(*sub);
  sub->callback([o, sub, run, &action] {
    o->resolve(*sub);
    action = [o, run] { return run(*o); };
  });
}

}  // namespace

void add_models(CLI::App& app, Action& action) { add_list(app, action, "models", "the shipped models", models); }
void add_devices(CLI::App& app, Action& action) { add_list(app, action, "devices", "the shipped devices", devices); }

}  // namespace vlmest::tool
