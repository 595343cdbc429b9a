// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/diagnose/evidence/snapshot/replayable.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE allocator::AllocatorConfig allocator_config(const RecordedSnapshot& s, allocator::AllocatorConfig base) {
  if (!s.settings) return base;
  auto c = base;
  if (s.settings->text) c = allocator::parse_allocator_config(*s.settings->text, c);
  if (const auto n = s.settings->max_split_size) c.max_split_size = Bytes(*n < 0 ? allocator::no_limit : *n);
  if (const auto x = s.settings->garbage_collection_threshold) c.garbage_collection_threshold = *x;
  if (const auto b = s.settings->expandable_segments) c.expandable_segments = *b;
  for (std::size_t i = 0; i < c.roundup_power2_divisions.size(); ++i)
    for (const auto& [size, divisions] : s.settings->roundup_power2_divisions)
      if (size == std::to_string(1 << i))
        c.roundup_power2_divisions[i] =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(divisions, -1, std::int64_t{1} << 30));
  check(c);
  return c;
}

VLMEST_INLINE allocator::MemorySnapshot replayable(const RecordedSnapshot& s, std::int64_t device,
                                                   const allocator::AllocatorConfig& base) {
  const std::string hint = "record with torch.cuda.memory._record_memory_history() and write with _dump_snapshot()";
  if (device < 0 || static_cast<std::size_t>(device) >= s.traces.size())
    throw Error("device_traces", "has no device " + std::to_string(device), hint);
  if (s.unknown_actions > 0) throw Error("device_traces", "'" + s.unknown_action + "' is no known action", hint);
  const auto address = [&](std::uint64_t n, const std::string& at) {
    if (n >= std::uint64_t{1} << 62) throw Error(at, "is not an address", hint);
    return static_cast<std::int64_t>(n);
  };
  allocator::MemorySnapshot m;
  m.config = allocator_config(s, base);
  for (std::size_t i = 0; i < s.segments.size(); ++i) {
    const auto& from = s.segments[i];
    if (from.device != device) continue;
    const auto at = "segments[" + std::to_string(i) + "]";
    if (from.pool_id != PoolId{})
      throw Error(at, "belongs to a private pool (CUDA graphs)", "private pools are not replayed");
    allocator::Segment to{
        address(from.address, at), from.size, from.pool, from.stream, from.expandable, {},
    };
    auto end = to.address;
    for (const auto& b : from.blocks) {
      const auto begin = address(b.address, at);
      if (begin != end) throw Error(at, "has blocks that do not follow each other", hint);
      to.blocks.push_back({begin, b.size, b.requested, b.state});
      end = checked_add(begin, b.size.value());
    }
    if (end != checked_add(to.address, to.size.value())) throw Error(at, "has blocks that do not fill it", hint);
    m.segments.push_back(std::move(to));
  }
  std::sort(m.segments.begin(), m.segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  const auto& trace = s.traces[static_cast<std::size_t>(device)];
  m.events.reserve(trace.size());
  for (const auto& e : trace) {
    const bool placed = e.action != allocator::TraceAction::oom && e.action != allocator::TraceAction::snapshot;
    m.events.push_back({e.action, placed ? address(e.address, "device_traces") : 0,
                        e.action == allocator::TraceAction::snapshot ? Bytes() : e.size, e.stream});
  }
  return m;
}

}  // namespace vlmest::diagnose
