// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/printed_size.hpp>

namespace vlmest::diagnose {

/// A line of the table: bytes now, at their peak, ever allocated, ever freed.
struct UsageRow {
  PrintedSize current, peak, allocated, freed;
  bool operator==(const UsageRow&) const = default;
};
/// The same of blocks and segments. From 750,000 on the table gives thousands: `unit` is 1, 1000 or 1000000.
struct CountRow {
  std::int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  std::int64_t unit = 1;
  bool operator==(const CountRow&) const = default;
};
template <class Row>
struct PoolRows {
  std::optional<Row> all, large, small;
  bool operator==(const PoolRows&) const = default;
};

/// torch.cuda.memory_summary(), or torch.cuda.memory_stats(), from which it is printed (torch/cuda/memory.py,
/// memory_summary). What a version does not print is empty.
struct MemorySummary {
  std::int64_t device = 0;
  std::int64_t ooms = 0, retries = 0;
  PoolRows<UsageRow> allocated, active, requested, reserved, non_releasable;
  PoolRows<CountRow> allocations, active_allocations, segments, non_releasable_allocations;
  std::optional<CountRow> oversize_allocations, oversize_segments;
  std::int64_t line = 0;  ///< of its heading in the file, from 1
};

namespace memory_summary {

/// A cell of bytes. The table cuts off what is below its unit, and its units are powers of 1024 under either name.
std::optional<PrintedSize> bytes_of(std::string_view cell);
std::optional<std::pair<std::int64_t, std::int64_t>> count_of(std::string_view cell);

/// Cells behind the row's name.
std::array<std::string_view, 4> cells(std::string_view row);
inline std::optional<UsageRow> usage_row(std::string_view row) {
  const auto c = cells(row);
  const auto a = bytes_of(c[0]), b = bytes_of(c[1]), x = bytes_of(c[2]), y = bytes_of(c[3]);
  if (!a || !b) return std::nullopt;
  return UsageRow{*a, *b, x.value_or(PrintedSize{}), y.value_or(PrintedSize{})};
}
inline std::optional<CountRow> count_row(std::string_view row) {
  const auto c = cells(row);
  const auto a = count_of(c[0]), b = count_of(c[1]), x = count_of(c[2]), y = count_of(c[3]);
  if (!a || !b) return std::nullopt;
  return CountRow{a->first, b->first, x ? x->first : 0, y ? y->first : 0, a->second};
}

/// Where the rows of a name go; "from large pool" belongs to the row above it.
struct Target {
  PoolRows<UsageRow>* usage = nullptr;
  PoolRows<CountRow>* count = nullptr;
  std::optional<CountRow>* single = nullptr;
};

Target target(MemorySummary& m, std::string_view name);

inline std::int64_t number_behind(std::string_view text, std::string_view words) {
  const auto at = text.rfind(words);
  if (at == std::string_view::npos) return 0;
  const auto n = count_of(text.substr(at + words.size(), 24));
  return n ? n->first : 0;
}

/// Reads the rows below a heading that ends at `at`; `at` moves past them.
void read_rows(std::string_view text, std::size_t& at, MemorySummary& m);

}  // namespace memory_summary

/// Every summary of a text, at most 1000, in its order. Never throws for what the text holds.
std::vector<MemorySummary> find_memory_summaries(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/memory_summary.hpp>
#endif
