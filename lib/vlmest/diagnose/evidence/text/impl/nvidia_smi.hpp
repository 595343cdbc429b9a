// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_time.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/nvidia_smi.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace nvidia_smi {

VLMEST_INLINE std::vector<std::string_view> cells(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; out.size() < most_cells;) {
    const auto end = std::min(line.find(',', at), line.size());
    auto cell = line.substr(at, end - at);
    while (!cell.empty() && is_blank(cell.front())) cell.remove_prefix(1);
    while (!cell.empty() && is_blank(cell.back())) cell.remove_suffix(1);
    out.push_back(cell);
    if (end == line.size()) break;
    at = end + 1;
  }
  return out;
}

VLMEST_INLINE std::optional<std::int64_t> mebibytes(std::string_view cell, bool needs_unit) {
  std::int64_t n = 0;
  std::size_t i = 0;
  while (i < cell.size() && is_digit(cell[i]) && i < 9) n = n * 10 + (cell[i++] - '0');
  if (i == 0) return std::nullopt;
  const auto unit = cell.substr(i);
  if (unit.empty() && !needs_unit) return n;
  return unit == " MiB" || unit == "MiB" ? std::optional(n) : std::nullopt;
}

}  // namespace nvidia_smi

VLMEST_INLINE std::optional<SmiColumns> smi_heading(std::string_view line) {
  if (line.find("memory.") == std::string_view::npos) return std::nullopt;
  SmiColumns c;
  const auto cells = nvidia_smi::cells(line);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto column = static_cast<int>(i);
    if (cells[i].starts_with("memory.used")) c.used = column;
    if (cells[i].starts_with("memory.total")) c.total = column;
    if (cells[i].starts_with("memory.free")) c.free = column;
    if (cells[i].starts_with("memory.reserved")) c.reserved = column;
    if (cells[i] == "index") c.index = column;
    if (cells[i] == "timestamp") c.time = column;
  }
  return c.any() ? std::optional(c) : std::nullopt;
}

VLMEST_INLINE std::optional<SmiColumns> smi_columns_of(std::string_view line) {
  if (line.size() > 300 || line.find_first_of("={(") != std::string_view::npos) return std::nullopt;
  const auto cells = nvidia_smi::cells(line);
  if (cells.size() < 2) return std::nullopt;
  // A colon is one of a time or a bus address; elsewhere it makes a log's line.
  if (line.find(':') != std::string_view::npos && !log_time(cells[0]) && line.find("MiB") == std::string_view::npos)
    return std::nullopt;
  for (const bool units : {true, false}) {
    // Where one cell has a unit, a number without one is a process or a GPU.
    if (!units && line.find("MiB") != std::string_view::npos) break;
    std::vector<std::pair<std::int64_t, int>> found;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (const auto n = nvidia_smi::mebibytes(cells[i], units); n && (units || *n > 500))
        found.emplace_back(*n, static_cast<int>(i));
    if (found.size() != 2) continue;
    SmiColumns c;
    const bool first = found[0].first > found[1].first;
    c.total = found[first ? 0 : 1].second;
    c.used = found[first ? 1 : 0].second;
    if (log_time(cells[0])) c.time = 0;
    const auto next = static_cast<std::size_t>(c.time + 1);
    if (next < cells.size() && static_cast<int>(next) != c.used && static_cast<int>(next) != c.total &&
        cells[next].size() < 3 && nvidia_smi::mebibytes(cells[next], false))
      c.index = static_cast<int>(next);
    return c;
  }
  return std::nullopt;
}

VLMEST_INLINE std::optional<MemoryRow> smi_row(std::string_view line, const SmiColumns& c) {
  const auto cells = nvidia_smi::cells(line);
  const auto cell = [&](int column) -> std::optional<std::int64_t> {
    if (column < 0 || static_cast<std::size_t>(column) >= cells.size()) return std::nullopt;
    return nvidia_smi::mebibytes(cells[static_cast<std::size_t>(column)], false);
  };
  const auto bytes = [&](int column) {
    const auto n = cell(column);
    return n ? std::optional(Bytes(*n << 20)) : std::nullopt;
  };
  MemoryRow r;
  r.used = bytes(c.used);
  r.total = bytes(c.total);
  r.free = bytes(c.free);
  r.rank = cell(c.index);
  r.time_s = log_time(line);
  if (!r.used && r.total && r.free && *r.free <= *r.total) r.used = *r.total - *r.free;
  return r.used || r.free ? std::optional(r) : std::nullopt;
}

VLMEST_INLINE std::optional<MemoryRow> smi_table_row(std::string_view line) {
  for (auto slash = line.find('/'); slash != std::string_view::npos; slash = line.find('/', slash + 1)) {
    auto end = slash;
    while (end > 0 && is_blank(line[end - 1])) --end;
    const auto total = size_at(line, slash + 1);
    if (!total || !total->size || total->size->value < Bytes(100 << 20)) continue;
    const auto unit = line.substr(0, total->at);
    if (!(unit.ends_with("MiB") || unit.ends_with("MB"))) continue;
    auto begin = end;
    while (begin > 0 && (is_letter(line[begin - 1]) || is_digit(line[begin - 1])) && end - begin < 16) --begin;
    const auto used = size_at(line.substr(begin, end - begin), 0, true);
    if (!used || !used->size) continue;
    const bool bare = is_digit(line[end - 1]);
    if (bare && used->size->value > Bytes(1 << 26)) continue;
    MemoryRow r;
    r.used = bare ? Bytes(used->size->value.value() << 20) : used->size->value;
    r.total = total->size->value;
    if (*r.used > *r.total) continue;
    return r;
  }
  return std::nullopt;
}

}  // namespace vlmest::diagnose
