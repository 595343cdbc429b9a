// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>
#include <vlmest/unit/error.hpp>

/// torch.cuda.memory._snapshot() written as JSON: json.dump(torch.cuda.memory._snapshot(), file). Keys are torch's
/// (torch/csrc/cuda/Module.cpp, THCPModule_memorySnapshot); stack frames and times are not looked at.
namespace vlmest::json {

namespace snapshot_json {

using nlohmann::json;

[[noreturn]] inline void fail(const std::string& at, const std::string& what) {
  throw Error(at, what, "write torch.cuda.memory._snapshot() with json.dump");
}

inline const json& member(const json& o, const std::string& at, const char* key) {
  if (!o.is_object()) fail(at, "is not an object");
  const auto i = o.find(key);
  if (i == o.end()) fail(at, std::string("has no ") + key);
  return *i;
}
inline const json& list(const json& o, const std::string& at, const char* key) {
  const json& l = member(o, at, key);
  if (!l.is_array()) fail(at + "." + key, "is not a list");
  return l;
}
inline std::int64_t integer(const json& v, const std::string& at) {
  if (!v.is_number_integer()) fail(at, "is not an integer");
  if (v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    fail(at, "is too large");
  return v.get<std::int64_t>();
}
/// Of bytes; at most what the allocator itself would hand out, so that sums of them stay in range.
inline Bytes bytes(const json& o, const std::string& at, const char* key) {
  const auto n = integer(member(o, at, key), at + "." + key);
  if (n < 0 || n >= allocator::max_request) fail(at + "." + key, "is not a size in bytes");
  return Bytes(n);
}
inline std::int64_t address(const json& o, const std::string& at, const char* key) {
  const auto n = integer(member(o, at, key), at + "." + key);
  if (n < 0 || n >= std::int64_t{1} << 62) fail(at + "." + key, "is not an address");
  return n;
}
inline std::string text(const json& o, const std::string& at, const char* key) {
  const json& v = member(o, at, key);
  if (!v.is_string()) fail(at + "." + key, "is not a word");
  return v.get<std::string>();
}
inline allocator::Stream stream(const json& o, const std::string& at) {
  return integer(member(o, at, "stream"), at + ".stream");
}

inline allocator::BlockState state(const std::string& word, const std::string& at) {
  if (word == "active_allocated") return allocator::BlockState::allocated;
  if (word == "active_awaiting_free" || word == "active_pending_free") return allocator::BlockState::awaiting;
  if (word != "inactive") fail(at, "'" + word + "' is no state of a block");
  return allocator::BlockState::cached;
}

inline allocator::Segment segment(const json& o, const std::string& at) {
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

inline allocator::TraceEvent event(const json& o, const std::string& at) {
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

/// The settings that were in force; the text of PYTORCH_ALLOC_CONF knows some that the table does not hold.
inline allocator::AllocatorConfig settings(const json& o, const std::string& at, allocator::AllocatorConfig c) {
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

/// One device of a snapshot. `base` gives what a snapshot does not tell: the device's memory and the fraction of it
/// that the process may use. Throws Error naming the entry that is missing or malformed.
inline allocator::MemorySnapshot read_memory_snapshot(const nlohmann::json& j, std::int64_t device = 0,
                                                      const allocator::AllocatorConfig& base = {}) {
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
