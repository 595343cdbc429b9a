// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vlmest {

/// What a figure counts.
enum class Unit : std::uint8_t { count, flops, bytes, milliseconds, microseconds };

constexpr std::string_view name(Unit u) {
  constexpr std::array<std::string_view, 5> names{"count", "flops", "bytes", "ms", "us"};
  return names[static_cast<std::size_t>(u)];
}

/// One figure of one measured row beside what the library says of it.
struct Comparison {
  std::string row;  ///< what tells it apart: a run's scenario, a benchmark's name
  std::string quantity;
  Unit unit = Unit::count;
  double predicted = 0, measured = 0;
  std::string where{};  ///< file and place of the row, filled in by who read it

  /// Signed, in percent of the measured value. Something predicted where nothing was measured is 100 % off.
  double error() const {
    if (measured == 0) return predicted == 0 ? 0 : 100;
    return 100 * (predicted / measured - 1);
  }
};

/// Absolute errors of one quantity, in percent.
struct ErrorSummary {
  std::string quantity;
  Unit unit = Unit::count;
  std::size_t rows = 0;
  double median = 0, mean = 0, worst = 0;
};

/// The errors of one quantity, summed up; no rows where nothing of that name was compared.
inline ErrorSummary summary(std::span<const Comparison> all, std::string_view quantity) {
  ErrorSummary s{.quantity = std::string(quantity)};
  std::vector<double> errors;
  for (const Comparison& c : all) {
    if (c.quantity != quantity) continue;
    s.unit = c.unit;
    errors.push_back(std::abs(c.error()));
  }
  s.rows = errors.size();
  if (errors.empty()) return s;
  std::sort(errors.begin(), errors.end());
  s.median = (errors[errors.size() / 2] + errors[(errors.size() - 1) / 2]) / 2;
  for (const double e : errors) s.mean += e / static_cast<double>(errors.size());
  s.worst = errors.back();
  return s;
}

/// The percentage of a quantity's rows whose error is `percent` or less.
inline double share_within(std::span<const Comparison> all, std::string_view quantity, double percent) {
  std::size_t rows = 0, within = 0;
  for (const Comparison& c : all) {
    if (c.quantity != quantity) continue;
    ++rows;
    if (std::abs(c.error()) <= percent) ++within;
  }
  return rows == 0 ? 0 : 100 * static_cast<double>(within) / static_cast<double>(rows);
}

/// What is said of all rows of a quantity together.
enum class Statistic : std::uint8_t { worst, mean, median };

inline constexpr std::array<std::string_view, 3> statistic_names{"worst", "mean", "median"};
constexpr std::string_view name(Statistic s) { return statistic_names[static_cast<std::size_t>(s)]; }

constexpr double value(const ErrorSummary& e, Statistic s) {
  return s == Statistic::worst ? e.worst : s == Statistic::mean ? e.mean : e.median;
}

/// How large the errors of a quantity may be, in percent.
struct ErrorLimit {
  std::string quantity;
  Statistic statistic = Statistic::worst;
  double percent = 0;

  /// A limit of what no row has measured does not hold: a check that compared nothing has shown nothing.
  bool holds(const ErrorSummary& e) const { return e.rows > 0 && value(e, statistic) <= percent; }
};

}  // namespace vlmest
