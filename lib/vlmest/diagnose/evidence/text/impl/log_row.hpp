// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_row.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose::memory_log {

VLMEST_INLINE std::optional<LogValue> behind_slash(const LogValue& v) {
  auto rest = v.after;
  while (!rest.empty() && is_blank(rest[0])) rest.remove_prefix(1);
  if (!rest.starts_with('/')) return std::nullopt;
  rest.remove_prefix(1);
  while (!rest.empty() && is_blank(rest[0])) rest.remove_prefix(1);
  const auto length = log_values::number_length(rest.substr(0, 60));
  if (length == 0) return std::nullopt;
  LogValue total = v;
  total.text = rest.substr(0, length);
  total.number = log_values::to_double(total.text);
  return total;
}

VLMEST_INLINE MemoryRow read_row(std::string_view line, std::string_view raw, KnownQuantities& quantities,
                                 bool& useful) {
  RowBuilder row(unit_of_line(line));
  // "free: 1.2 GB, total: 79 GB" are of a GPU where the line says so.
  const auto of_gpu = [&] {
    return raw.find("GPU") != std::string_view::npos || raw.find("gpu") != std::string_view::npos ||
           raw.find("cuda") != std::string_view::npos || raw.find("CUDA") != std::string_view::npos;
  };
  each_value(line, [&](const LogValue& v) {
    if (v.after.starts_with("%")) return;
    const PlainLabel plain(v.label);
    const std::string_view label = plain;
    if (label.empty() || label.size() > 60) return;
    auto q = quantities(label, v.after);
    if (q == Quantity::none && v.unit.size() > 1 && is(label, {"free", "total", "used"}) && of_gpu())
      q = quantity(std::string(label) + " memory", v.after);
    if (q == Quantity::none) return;
    if (q == Quantity::total && log_prefix::has(label, "used"))
      if (const auto total = behind_slash(v)) {
        row.add(Quantity::used, label, v);
        row.add(Quantity::total, label, *total);
        return;
      }
    row.add(q, label, v);
  });
  useful = row.useful();
  return row.take();
}

}  // namespace vlmest::diagnose::memory_log
