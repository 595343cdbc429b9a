// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/memory_summary.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace memory_summary {

VLMEST_INLINE std::optional<PrintedSize> bytes_of(std::string_view cell) {
  const auto found = size_at(cell, 0);
  if (!found || !found->size) return std::nullopt;
  const auto& s = *found->size;
  if (s.exact()) return s;
  // size_at takes the number as rounded: half a unit on both sides.
  const auto unit = s.high - s.low;
  return PrintedSize{s.value, s.value, s.value + Bytes(unit.value() - 1)};
}

VLMEST_INLINE std::optional<std::pair<std::int64_t, std::int64_t>> count_of(std::string_view cell) {
  const auto first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos || !is_digit(cell[first])) return std::nullopt;
  std::int64_t n = 0, unit = 1;
  auto i = first;
  while (i < cell.size() && is_digit(cell[i]) && i - first < 12) n = n * 10 + (cell[i++] - '0');
  while (i < cell.size() && is_blank(cell[i])) ++i;
  if (i < cell.size() && (cell[i] == 'K' || cell[i] == 'M')) unit = cell[i] == 'K' ? 1000 : 1000000;
  return std::pair(n * unit, unit);
}

VLMEST_INLINE std::array<std::string_view, 4> cells(std::string_view row) {
  std::array<std::string_view, 4> c{};
  auto at = row.find('|');
  for (std::size_t i = 0; i < c.size() && at != std::string_view::npos; ++i) {
    const auto end = row.find('|', at + 1);
    c[i] = row.substr(at + 1, (end == std::string_view::npos ? row.size() : end) - at - 1);
    at = end;
  }
  return c;
}

VLMEST_INLINE Target target(MemorySummary& m, std::string_view name) {
  if (name == "Allocated memory") return {&m.allocated};
  if (name == "Active memory") return {&m.active};
  if (name == "Requested memory") return {&m.requested};
  if (name == "GPU reserved memory") return {&m.reserved};
  if (name == "Non-releasable memory") return {&m.non_releasable};
  if (name == "Allocations") return {nullptr, &m.allocations};
  if (name == "Active allocs") return {nullptr, &m.active_allocations};
  if (name == "GPU reserved segments") return {nullptr, &m.segments};
  if (name == "Non-releasable allocs") return {nullptr, &m.non_releasable_allocations};
  if (name == "Oversize allocations") return {nullptr, nullptr, &m.oversize_allocations};
  if (name == "Oversize GPU segments") return {nullptr, nullptr, &m.oversize_segments};
  return {};
}

VLMEST_INLINE void read_rows(std::string_view text, std::size_t& at, MemorySummary& m) {
  Target now;
  for (int n = 0, others = 0; n < 80 && others < 6 && at < text.size(); ++n) {
    const auto begin = at;
    const auto line = plain_text(next_line(text.substr(0, std::min(text.size(), begin + 4096)), at));
    if (line.find("memory summary, device") != std::string::npos) {
      at = begin;
      return;
    }
    std::string_view row(line);
    const auto letter = row.find_first_of("ANGORf");
    for (const std::string_view name :
         {"Allocated memory", "Active memory", "Requested memory", "GPU reserved memory", "Non-releasable memory",
          "Allocations", "Active allocs", "GPU reserved segments", "Non-releasable allocs", "Oversize allocations",
          "Oversize GPU segments", "from large pool", "from small pool"}) {
      const auto word = row.find(name);
      if (word == std::string_view::npos || letter == std::string_view::npos) continue;
      row.remove_prefix(word + name.size());
      others = 0;
      if (name.starts_with("from")) {
        const bool large = name == "from large pool";
        if (now.usage) (large ? now.usage->large : now.usage->small) = usage_row(row);
        if (now.count) (large ? now.count->large : now.count->small) = count_row(row);
      } else {
        now = target(m, name);
        if (now.usage) now.usage->all = usage_row(row);
        if (now.count) now.count->all = count_row(row);
        if (now.single) *now.single = count_row(row);
      }
      break;
    }
    if (row.size() == line.size()) ++others;
  }
}

}  // namespace memory_summary

VLMEST_INLINE std::vector<MemorySummary> find_memory_summaries(std::string_view text) {
  using namespace memory_summary;
  std::vector<MemorySummary> found;
  std::size_t counted = 0;
  std::int64_t line = 1;
  for (auto at = text.find("Cur Usage"); at != std::string_view::npos && found.size() < 1000;
       at = text.find("Cur Usage", at)) {
    MemorySummary m;
    const auto back = std::min<std::size_t>(at, 700);
    auto heading = text.substr(at - back, back);
    // What stands above belongs to this table from its last "memory summary" on.
    const auto title = heading.rfind("memory summary, device");
    if (title != std::string_view::npos) {
      heading.remove_prefix(title);
      m.device = number_behind(heading, "device ID");
      m.ooms = number_behind(heading, "OOMs:");
      m.retries = number_behind(heading, "retries:");
    }
    for (; counted < at; ++counted) line += text[counted] == '\n';
    m.line = line;
    at += 9;
    next_line(text, at);
    read_rows(text, at, m);
    if (m.allocated.all || m.reserved.all) found.push_back(std::move(m));
  }
  return found;
}

}  // namespace vlmest::diagnose
