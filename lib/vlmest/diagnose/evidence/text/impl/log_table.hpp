// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/log_row.hpp>
#include <vlmest/diagnose/evidence/text/log_table.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace log_table {

VLMEST_INLINE std::vector<std::string_view> cells(std::string_view line, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; out.size() <= most_columns;) {
    const auto end = std::min(line.find(separator, at), line.size());
    auto cell = traceback_reader::trim(line.substr(at, end - at));
    if (cell.size() > 1 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    out.push_back(cell);
    if (end == line.size()) break;
    at = end + 1;
  }
  return out;
}

VLMEST_INLINE std::optional<LogValue> value(std::string_view cell) {
  LogValue v;
  const auto length = log_values::number_length(cell.substr(0, 60));
  if (length == 0) {
    const auto special = log_values::special(cell);
    if (!special) return std::nullopt;
    v.number = *special;
    v.text = cell;
    return v;
  }
  v.text = cell.substr(0, length);
  v.number = log_values::to_double(v.text);
  v.unit = traceback_reader::trim(cell.substr(length));
  const bool size = std::any_of(size_units.begin(), size_units.end(), [&](const auto& u) {
    return u.first.size() == v.unit.size() && size_text::same_letters(v.unit, 0, u.first);
  });
  return v.unit.empty() || size ? std::optional(v) : std::nullopt;
}

}  // namespace log_table

VLMEST_INLINE std::optional<LogTable> table_heading(std::string_view line) {
  using memory_log::Quantity;
  if (line.size() > 1 << 14 || line.empty() || (!is_letter(line[0]) && line[0] != '"' && line[0] != '_'))
    return std::nullopt;
  const char separator = line.find('\t') != std::string_view::npos ? '\t' : ',';
  const auto first = line.find(separator);
  if (first == std::string_view::npos) return std::nullopt;
  // Names of several words stand in quotes, or are parted by tabs; others make a sentence.
  const auto sentence = [&](std::string_view cell) {
    return separator == ',' && cell.find(' ') != std::string_view::npos &&
           (cell.data() == line.data() || *(cell.data() - 1) != '"');
  };
  if (line[0] != '"' && sentence(line.substr(0, first))) return std::nullopt;
  if (std::any_of(line.begin(), line.end(), [](char c) { return c == '=' || c == '{' || c == '}' || c == '\''; }))
    return std::nullopt;
  LogTable t{separator, {}};
  bool telling = false;
  for (const auto cell : log_table::cells(line, separator)) {
    if (sentence(cell)) return std::nullopt;
    if (cell.size() > 120 || t.columns.size() >= log_table::most_columns) return std::nullopt;
    // A name: a letter first, no sentence and no "label: value".
    if (cell.empty() ? separator == '\t' : !is_letter(cell[0]) && cell[0] != '_') return std::nullopt;
    if (cell.find(": ") != std::string_view::npos || cell == "pid") return std::nullopt;  // a list of processes
    LogTable::Column c{plain_label(cell), Quantity::none};
    if (cell.find('%') == std::string_view::npos) c.quantity = memory_log::quantity(c.label, "");
    telling = telling || (c.quantity != Quantity::none && c.quantity != Quantity::step && c.quantity != Quantity::rank);
    t.columns.push_back(std::move(c));
  }
  return telling && t.columns.size() > 1 ? std::optional(std::move(t)) : std::nullopt;
}

VLMEST_INLINE std::optional<MemoryRow> table_row(std::string_view line, const LogTable& t) {
  using memory_log::Quantity;
  if (line.size() > 1 << 14) return std::nullopt;
  const auto cells = log_table::cells(line, t.separator);
  if (cells.size() != t.columns.size()) return std::nullopt;
  memory_log::RowBuilder row(0);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& c = t.columns[i];
    if (c.quantity == Quantity::none || cells[i].empty()) continue;
    const auto v = log_table::value(cells[i]);
    if (!v) return std::nullopt;
    row.add(c.quantity, c.label, *v);
  }
  return row.useful() ? std::optional(row.take()) : std::nullopt;
}

}  // namespace vlmest::diagnose
