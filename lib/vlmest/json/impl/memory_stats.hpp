// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/json/memory_stats.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::json {
namespace memory_stats_json {

VLMEST_INLINE const json* find(const json& j, const std::string& key) {
  if (const auto i = j.find(key); i != j.end()) return &*i;
  const json* at = &j;
  for (std::size_t begin = 0; begin <= key.size();) {
    const auto end = std::min(key.find('.', begin), key.size());
    if (!at->is_object()) return nullptr;
    const auto i = at->find(key.substr(begin, end - begin));
    if (i == at->end()) return nullptr;
    at = &*i;
    begin = end + 1;
  }
  return at;
}

VLMEST_INLINE std::int64_t number(const json& j, const std::string& key, bool& there) {
  const json* v = find(j, key);
  if (v == nullptr) return 0;
  there = true;
  if (!v->is_number_integer()) throw Error(key, "is not an integer", "write torch.cuda.memory_stats() with json.dump");
  if (v->is_number_unsigned() && v->get<std::uint64_t>() > (std::uint64_t{1} << 62))
    throw Error(key, "is too large", "write torch.cuda.memory_stats() with json.dump");
  const auto n = v->get<std::int64_t>();
  if (n < 0) throw Error(key, "is negative", "write torch.cuda.memory_stats() with json.dump");
  return n;
}

}  // namespace memory_stats_json

VLMEST_INLINE diagnose::MemorySummary read_memory_stats(const nlohmann::json& j) {
  using namespace memory_stats_json;
  if (!j.is_object()) throw Error("memory_stats", "is not an object", "write torch.cuda.memory_stats() with json.dump");
  diagnose::MemorySummary m;
  pools(j, "allocated_bytes", m.allocated);
  pools(j, "active_bytes", m.active);
  pools(j, "requested_bytes", m.requested);
  pools(j, "reserved_bytes", m.reserved);
  pools(j, "inactive_split_bytes", m.non_releasable);
  pools(j, "allocation", m.allocations);
  pools(j, "active", m.active_allocations);
  pools(j, "segment", m.segments);
  pools(j, "inactive_split", m.non_releasable_allocations);
  m.oversize_allocations = count_row(j, "oversize_allocations");
  m.oversize_segments = count_row(j, "oversize_segments");
  bool there = false;
  m.ooms = number(j, "num_ooms", there);
  m.retries = number(j, "num_alloc_retries", there);
  if (!m.allocated.all && !m.reserved.all)
    throw Error("memory_stats", "has no allocated_bytes and no reserved_bytes",
                "write torch.cuda.memory_stats() with json.dump");
  return m;
}

}  // namespace vlmest::json
