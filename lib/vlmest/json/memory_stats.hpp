// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/text/memory_summary.hpp>

/// torch.cuda.memory_stats() written as JSON, flat ("allocated_bytes.all.current": 0) or nested
/// (memory_stats_as_nested_dict). Source of the keys: torch/cuda/memory.py, memory_stats.
namespace vlmest::json {

namespace memory_stats_json {

using nlohmann::json;

/// The value of a.b.c, flat or nested; null where it is not there.
const json* find(const json& j, const std::string& key);
std::int64_t number(const json& j, const std::string& key, bool& there);
inline std::optional<diagnose::CountRow> count_row(const json& j, const std::string& key) {
  bool there = false;
  const auto n = [&](const char* what) { return number(j, key + "." + what, there); };
  const diagnose::CountRow row{n("current"), n("peak"), n("allocated"), n("freed")};
  return there ? std::optional(row) : std::nullopt;
}
inline std::optional<diagnose::UsageRow> usage_row(const json& j, const std::string& key) {
  const auto row = count_row(j, key);
  if (!row) return std::nullopt;
  const auto at = [](std::int64_t n) { return diagnose::PrintedSize::exactly(Bytes(n)); };
  return diagnose::UsageRow{at(row->current), at(row->peak), at(row->allocated), at(row->freed)};
}
template <class Row>
void pools(const json& j, const std::string& key, diagnose::PoolRows<Row>& rows) {
  const auto one = [&](const char* pool) {
    if constexpr (std::is_same_v<Row, diagnose::UsageRow>)
      return usage_row(j, key + "." + pool);
    else
      return count_row(j, key + "." + pool);
  };
  rows = {one("all"), one("large_pool"), one("small_pool")};
}

}  // namespace memory_stats_json

/// Throws Error where the object has none of the keys, or a value is no count.
diagnose::MemorySummary read_memory_stats(const nlohmann::json& j);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/memory_stats.hpp>
#endif
