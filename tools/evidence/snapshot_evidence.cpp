// SPDX-License-Identifier: Apache-2.0
#include "evidence/snapshot_evidence.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/evidence/trace/trace_plot.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>
#include <vlmest/json/recorded_snapshot.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;
using Json = nlohmann::ordered_json;

/// Stacks that are listed.
constexpr std::size_t shown_groups = 12;

Json group_json(const RecordedSnapshot& s, const LiveGroup& g) {
  return {{"role", name(g.role)},        {"where", snapshot_failure::place(s.stacks, g.site)},
          {"stage", name(g.site.stage)}, {"count", g.count},
          {"bytes", g.bytes.value()},    {"largest_bytes", g.largest.value()}};
}

Evidence evidence_of(const RecordedSnapshot& s) {
  Evidence e;
  e.kind = "snapshot";
  const std::int64_t device = device_of_interest(s);
  const SnapshotAnalysis a = analyse(s, device);
  const ReservedMemory& r = a.reserved;
  e.failure = failure_of(s, a);
  e.out_of_memory = a.oom.has_value();
  Json roles = Json::object(), groups = Json::array();
  for (std::size_t i = 0; i < a.by_role.size(); ++i)
    if (a.by_role[i].count > 0) roles[std::string(memory_roles[i])] = a.by_role[i].bytes.value();
  for (std::size_t i = 0; i < std::min(a.groups.size(), shown_groups); ++i)
    groups.push_back(group_json(s, a.groups[i]));
  e.facts = {{"device", device},
             {"events", trace_of(s, device).size()},
             {"ooms", a.ooms},
             {"peak_active_bytes", a.timeline.peak.value()},
             {"peak_reserved_bytes", a.timeline.peak_reserved.value()},
             {"live_bytes", a.live.value()},
             {"by_role", std::move(roles)},
             {"groups", std::move(groups)},
             {"reserved",
              {{"bytes", r.reserved.value()},
               {"whole_free_bytes", r.whole.value()},
               {"split_free_bytes", r.split.value()},
               {"largest_free_bytes", r.largest_free.value()},
               {"pieces", r.pieces},
               {"private_pools_bytes", r.private_pools.value()},
               {"in_pieces", r.in_pieces}}}};
  if (a.oom) {
    e.facts["oom"] = {{"requested_bytes", a.oom->size.value()},
                      {"segment_bytes", a.oom->segment.value()},
                      {"device_free_bytes", a.oom->device_free.value()},
                      {"where", snapshot_failure::place(s.stacks, a.oom_site)},
                      {"phase", name(e.failure->phase)},
                      {"site", name(e.failure->site)}};
    e.lines.push_back(fmt::format("an allocation of {} failed in {}, over {} alive and {} reserved",
                                  in_words(a.oom->size), snapshot_failure::place(s.stacks, a.oom_site),
                                  in_words(a.live), in_words(r.reserved)));
  } else {
    e.lines.push_back(fmt::format("no allocation failed; the peak is {} alive of {} reserved", in_words(a.live),
                                  in_words(a.timeline.peak_reserved)));
  }
  if (trace_of(s, device).size() <= 1)
    e.lines.push_back("there is no history: call torch.cuda.memory._record_memory_history() before what is to be seen");
  if (!a.growth.bytes.empty())
    e.facts["growth"] = {{"steps", a.growth.bytes.size()},
                         {"bytes_per_step", significant(a.growth.bytes_per_step)},
                         {"rising", significant(a.growth.rising)}};
  if (r.whole + r.split > Bytes{})
    e.lines.push_back(
        fmt::format("reserved and not in use: {} in whole segments, {} between live blocks, the largest "
                    "piece {}",
                    in_words(r.whole), in_words(r.split), in_words(r.largest_free)));
  for (std::size_t i = 0; i < std::min<std::size_t>(a.groups.size(), 6); ++i) {
    const LiveGroup& g = a.groups[i];
    e.lines.push_back(fmt::format("{:>10}  {} x {} ({})", in_words(g.bytes), g.count,
                                  snapshot_failure::place(s.stacks, g.site), name(g.role)));
  }
  return e;
}

}  // namespace

Evidence pickled_snapshot_evidence(FileSource& source, const std::string& where) {
  ByteSource bytes([&source] { return source(); });
  return evidence_of(read_recorded_snapshot(bytes, where));
}

Evidence json_snapshot_evidence(std::string_view text, const std::string& where) {
  return evidence_of(json::read_recorded_snapshot(text, where));
}

Evidence page_snapshot_evidence(std::string_view text, const std::string& where) {
  auto bytes = trace_plot_pickle(text);
  if (!bytes) throw Error(where, "a page without a snapshot inside", "give the .pickle that the page was made of");
  return evidence_of(read_recorded_snapshot(*bytes, where));
}

}  // namespace vlmest::tool
