// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/allocator/what_if.hpp>
#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/diagnose/evidence/snapshot/replayable.hpp>
#include <vlmest/json/memory_snapshot.hpp>
#include <vlmest/json/parse.hpp>

#include "args.hpp"
#include "command.hpp"
#include "evidence/gzip_source.hpp"
#include "options.hpp"
#include "output/json_document.hpp"
#include "output/table.hpp"
#include "streams.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;

struct ReplayOptions {
  std::string file;
  std::int64_t device = 0;
  std::vector<std::string> settings;
  Output output;
};

Json segment(const allocator::Segment& s) {
  Json blocks = Json::array();
  for (const auto& b : s.blocks)
    blocks.push_back({{"address", b.address},
                      {"size", b.size.value()},
                      {"requested_size", b.requested.value()},
                      {"state", b.allocated() ? "active_allocated"
                                : b.active()  ? "active_awaiting_free"
                                              : "inactive"}});
  return {{"address", s.address},
          {"total_size", s.size.value()},
          {"allocated_size", allocated_size(s).value()},
          {"active_size", active_size(s).value()},
          {"requested_size", requested_size(s).value()},
          {"segment_type", s.pool == allocator::Pool::small ? "small" : "large"},
          {"is_expandable", s.expandable},
          {"stream", s.stream},
          {"blocks", std::move(blocks)}};
}

/// A pickle as _dump_snapshot() writes it, or JSON; gzip is undone.
allocator::MemorySnapshot read(const std::string& file, std::int64_t device) {
  const std::string where = file == "-" ? "standard input" : file;
  FileSource source(file);
  if (diagnose::is_pickle(source.head())) {
    diagnose::ByteSource bytes([&source] { return source(); });
    return diagnose::replayable(diagnose::read_recorded_snapshot(bytes, where), device);
  }
  source.limit({.bytes = std::uint64_t{512} << 20, .ratio = 64, .hint = "give the pickle that _dump_snapshot() wrote"});
  std::string text;
  for (std::string_view piece = source(); !piece.empty(); piece = source()) text.append(piece);
  try {
    return json::read_memory_snapshot(json::parse(text, where), device);
  } catch (const Error& e) {
    if (e.where != where) throw;  // of an entry, which says more
    throw Error(e.where, e.what_happened, "write it with torch.cuda.memory._dump_snapshot()");
  }
}

int replay(const ReplayOptions& o) {
  const allocator::MemorySnapshot snapshot = read(o.file, o.device);
  const allocator::Reproduction r = allocator::reproduce(snapshot);
  const allocator::Replay& p = r.replay;

  Table t{.head = {"settings", "peak allocated", "peak reserved"}, .rows = {}};
  Json others = Json::array();
  for (const auto& text : o.settings) {
    const auto peaks = allocator::peaks_with(allocator_settings(text, snapshot.config), snapshot, r.initial);
    t.rows.push_back({text, show(peaks.allocated), show(peaks.reserved)});
    others.push_back({{"settings", text},
                      {"peak_allocated_bytes", peaks.allocated.value()},
                      {"peak_reserved_bytes", peaks.reserved.value()}});
  }
  if (o.output.format == Format::json) {
    Json segments = Json::array();
    for (const auto& s : p.segments) segments.push_back(segment(s));
    const Json out = {{"schema_version", 1},
                      {"events", snapshot.events.size()},
                      {"exact", r.exact},
                      {"difference", r.difference},
                      {"allocated_bytes", p.allocated.value()},
                      {"reserved_bytes", p.reserved.value()},
                      {"peak",
                       {{"event", p.peak_event},
                        {"allocated_bytes", p.peak_allocated.value()},
                        {"reserved_bytes", p.at_peak.reserved.value()},
                        {"releasable_bytes", p.at_peak.releasable.value()},
                        {"split_bytes", p.at_peak.split.value()},
                        {"largest_free_bytes", p.at_peak.largest_free.value()}}},
                      {"segments", std::move(segments)},
                      {"with_settings", std::move(others)}};
    o.output.write(json_document(out));
    return r.exact ? Exit::done : Exit::no;
  }
  std::string out = fmt::format(
      "{} events, {} segments: {}\npeak at event {}: {} allocated, {} reserved, of it {} in gaps between live blocks "
      "and "
      "{} cached\n",
      grouped(static_cast<std::int64_t>(snapshot.events.size())), p.segments.size(),
      r.exact ? "every block as recorded" : "not as recorded: " + r.difference,
      grouped(static_cast<std::int64_t>(p.peak_event)), show(p.peak_allocated), show(p.at_peak.reserved),
      show(p.at_peak.split), show(p.at_peak.releasable));
  if (!t.rows.empty()) out += "\n" + (o.output.format == Format::markdown ? markdown(t) : text(t));
  if (o.output.format == Format::csv) out = csv(t);
  o.output.write(out);
  return r.exact ? Exit::done : Exit::no;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto o = std::make_shared<ReplayOptions>();
  CLI::App* sub = app.add_subcommand("replay", "a recorded memory snapshot, replayed by torch's rules");
  sub->add_option("file", o->file, "a snapshot of torch.cuda.memory._dump_snapshot(), or as JSON; - is standard input")
      ->type_name("FILE")
      ->required();
  add_whole(*sub, "--cuda-device", o->device, "the device's number in it [0]", 0);
  sub->add_option("--alloc-conf", o->settings, "also with these settings of PYTORCH_ALLOC_CONF; may be repeated")
      ->type_name("KEY:VALUE,...")
      ->allow_extra_args(false);
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    o->output.resolve(*sub);
    if (o->output.format == Format::csv && o->settings.empty())
      throw UsageError("--format", "CSV holds the peaks with other settings alone",
                       "give --alloc-conf, or another format");
    action = [o] { return replay(*o); };
  });
}

}  // namespace vlmest::tool
