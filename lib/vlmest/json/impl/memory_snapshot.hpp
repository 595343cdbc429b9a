// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/json/memory_snapshot.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace snapshot_json {

VLMEST_INLINE allocator::Segment segment(const json& o, const std::string& at) {
  allocator::Segment s;
  s.address = address(o, at, "address");
  s.size = bytes(o, at, "total_size");
  s.stream = stream(o, at);
  const auto type = text(o, at, "segment_type");
  if (type != "small" && type != "large") fail(at + ".segment_type", "is neither small nor large");
  s.pool = type == "small" ? allocator::Pool::small : allocator::Pool::large;
  if (const auto v = o.find("is_expandable"); v != o.end()) {
    if (!v->is_boolean()) fail(at + ".is_expandable", "is neither true nor false");
    s.expandable = v->get<bool>();
  }
  if (const auto id = o.find("segment_pool_id"); id != o.end() && *id != json::array({0, 0}))
    throw Error(at, "belongs to a private pool (CUDA graphs)", "private pools are not replayed");
  auto end = s.address;
  std::size_t n = 0;
  for (const json& b : list(o, at, "blocks")) {
    const auto here = at + ".blocks[" + std::to_string(n++) + "]";
    // Snapshots before torch 2.1 give no addresses: blocks follow each other.
    const auto begin = b.is_object() && b.contains("address") ? address(b, here, "address") : end;
    s.blocks.push_back({begin, bytes(b, here, "size"), bytes(b, here, "requested_size"),
                        state(text(b, here, "state"), here + ".state")});
    if (begin != end) fail(here + ".address", "is not where the block before it ends");
    end = begin + s.blocks.back().size.value();
  }
  if (end != s.address + s.size.value()) fail(at + ".blocks", "do not fill the segment");
  return s;
}

VLMEST_INLINE allocator::TraceEvent event(const json& o, const std::string& at) {
  allocator::TraceEvent e;
  const auto action = text(o, at, "action");
  const auto known = std::find(allocator::trace_actions.begin(), allocator::trace_actions.end(), action);
  if (known == allocator::trace_actions.end()) fail(at + ".action", "'" + action + "' is not known");
  e.action = static_cast<allocator::TraceAction>(known - allocator::trace_actions.begin());
  if (e.action != allocator::TraceAction::oom && e.action != allocator::TraceAction::snapshot)
    e.address = address(o, at, "addr");
  if (e.action != allocator::TraceAction::snapshot) e.size = bytes(o, at, "size");
  e.stream = stream(o, at);
  return e;
}

VLMEST_INLINE allocator::AllocatorConfig settings(const json& o, const std::string& at, allocator::AllocatorConfig c) {
  if (!o.is_object()) fail(at, "is not an object");
  for (const char* key : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (o.contains(key)) {
      c = allocator::parse_allocator_config(text(o, at, key), c);
      break;
    }
  if (o.contains("max_split_size")) {
    const json& v = o["max_split_size"];  // without a limit, 2^64 - 1, as -1 or as itself
    const bool none = v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const auto n = none ? -1 : integer(v, at + ".max_split_size");
    c.max_split_size = Bytes(n < 0 ? allocator::no_limit : n);
  }
  if (const auto v = o.find("garbage_collection_threshold"); v != o.end() && v->is_number())
    c.garbage_collection_threshold = v->get<double>();
  if (const auto v = o.find("expandable_segments"); v != o.end() && v->is_boolean())
    c.expandable_segments = v->get<bool>();
  if (const auto v = o.find("roundup_power2_divisions"); v != o.end() && v->is_object())
    for (std::size_t i = 0; i < c.roundup_power2_divisions.size(); ++i) {
      const auto key = std::to_string(1 << i);
      if (v->contains(key))
        c.roundup_power2_divisions[i] =
            static_cast<std::int32_t>(std::min<std::int64_t>(integer((*v)[key], at + "." + key), 1 << 30));
    }
  check(c);
  return c;
}

}  // namespace snapshot_json

VLMEST_INLINE allocator::MemorySnapshot read_memory_snapshot(const nlohmann::json& j, std::int64_t device,
                                                             const allocator::AllocatorConfig& base) {
  using namespace snapshot_json;
  allocator::MemorySnapshot m;
  m.config = j.is_object() && j.contains("allocator_settings")
                 ? settings(j["allocator_settings"], "allocator_settings", base)
                 : base;
  std::size_t n = 0;
  for (const auto& s : list(j, "snapshot", "segments")) {
    const auto at = "segments[" + std::to_string(n++) + "]";
    if (!s.is_object()) fail(at, "is not an object");
    if (s.contains("device") && integer(s["device"], at + ".device") != device) continue;
    m.segments.push_back(segment(s, at));
  }
  std::sort(m.segments.begin(), m.segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  const auto& traces = list(j, "snapshot", "device_traces");
  if (device < 0 || static_cast<std::size_t>(device) >= traces.size())
    fail("device_traces", "has no device " + std::to_string(device));
  const auto& trace = traces[static_cast<std::size_t>(device)];
  if (!trace.is_array()) fail("device_traces[" + std::to_string(device) + "]", "is not a list");
  n = 0;
  for (const auto& e : trace)
    m.events.push_back(event(e, "device_traces[" + std::to_string(device) + "][" + std::to_string(n++) + "]"));
  return m;
}

}  // namespace vlmest::json
