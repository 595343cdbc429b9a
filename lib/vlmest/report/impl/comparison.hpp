// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>

#include <vlmest/report/comparison.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE std::vector<std::vector<double>> errors_by_row(std::span<const Comparison> all,
                                                             std::string_view quantity) {
  std::map<std::pair<std::string_view, double>, std::size_t> places;
  std::vector<std::vector<double>> r;
  for (const Comparison& c : all) {
    if (c.quantity != quantity) continue;
    const auto [at, is_new] = places.try_emplace({c.row, c.predicted}, r.size());
    if (is_new) r.emplace_back();
    r[at->second].push_back(std::abs(c.error()));
  }
  return r;
}

VLMEST_INLINE ErrorSummary summary(std::span<const Comparison> all, std::string_view quantity) {
  ErrorSummary s{.quantity = std::string(quantity)};
  for (const Comparison& c : all) {
    if (c.quantity != quantity) continue;
    s.unit = c.unit;
    s.fitted = s.measurements == 0 ? c.fitted : together(s.fitted, c.fitted);
    ++s.measurements;
    if (c.range) ++s.ranged;
    if (c.in_range()) ++s.in_range;
  }
  std::vector<double> errors;
  for (const auto& row : errors_by_row(all, quantity)) {
    double sum = 0;
    for (const double e : row) {
      sum += e;
      s.worst = std::max(s.worst, e);
    }
    errors.push_back(sum / static_cast<double>(row.size()));
  }
  s.rows = errors.size();
  if (errors.empty()) return s;
  std::sort(errors.begin(), errors.end());
  s.median = (errors[errors.size() / 2] + errors[(errors.size() - 1) / 2]) / 2;
  for (const double e : errors) s.mean += e / static_cast<double>(errors.size());
  return s;
}

}  // namespace vlmest
