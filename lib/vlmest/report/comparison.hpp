// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/unit/words.hpp>

namespace vlmest {

/// What a figure counts.
enum class Unit : std::uint8_t { count, flops, bytes, milliseconds, microseconds };
template <>
inline constexpr std::array<std::string_view, 5> words_of<Unit>{"count", "flops", "bytes", "ms", "us"};

/// Whether anything that predicts a figure was fitted to its measurement: a parameter's value, or a rule that was
/// chosen with it in sight. `unknown` where the rows do not say.
enum class Fitted : std::uint8_t { unknown, no, partly, yes };
template <>
inline constexpr std::array<std::string_view, 4> words_of<Fitted>{"-", "no", "partly", "yes"};

/// Of several rows together: what all are, else partly. Rows that do not say leave it open.
constexpr Fitted together(Fitted a, Fitted b) {
  if (a == b) return a;
  return a == Fitted::unknown || b == Fitted::unknown ? Fitted::unknown : Fitted::partly;
}

/// Between which values a figure is predicted to lie.
struct Range {
  double low = 0, high = 0;
};

/// One figure of one measured row beside what the library says of it.
struct Comparison {
  std::string row;  ///< what tells it apart: a run's scenario, a benchmark's name
  std::string quantity;
  Unit unit = Unit::count;
  double predicted = 0, measured = 0;
  std::string where{};  ///< file and place of the row, filled in by who read it
  std::optional<Range> range{};
  Fitted fitted = Fitted::unknown;  ///< likewise

  /// Signed, in percent of the measured value. Something predicted where nothing was measured is 100 % off.
  double error() const {
    if (measured == 0) return predicted == 0 ? 0 : 100;
    return 100 * (predicted / measured - 1);
  }
  bool in_range() const { return range && range->low <= measured && measured <= range->high; }
};

/// Absolute errors of one quantity, in percent.
struct ErrorSummary {
  std::string quantity;
  Unit unit = Unit::count;
  std::size_t rows = 0;  ///< measured once or several times
  double median = 0, mean = 0, worst = 0;
  std::size_t measurements = 0;  ///< repeated ones counted each
  std::size_t ranged = 0;        ///< of them predicted with a range
  std::size_t in_range = 0;
  Fitted fitted = Fitted::unknown;

  /// The percentage of measurements that lie in the range that was predicted.
  double coverage() const {
    return ranged == 0 ? 0 : 100 * static_cast<double>(in_range) / static_cast<double>(ranged);
  }
};

/// The absolute errors of each row of a quantity. What was measured several times, the same row with the same
/// prediction, is one.
std::vector<std::vector<double>> errors_by_row(std::span<const Comparison> all, std::string_view quantity);

/// The errors of one quantity, summed up; no rows where nothing of that name was compared. A row that was measured
/// several times counts once, with the mean of its errors; the worst error is that of any measurement.
ErrorSummary summary(std::span<const Comparison> all, std::string_view quantity);

/// The percentage of a quantity's rows whose errors are all `percent` or less.
inline double share_within(std::span<const Comparison> all, std::string_view quantity, double percent) {
  const auto rows = errors_by_row(all, quantity);
  const auto within = std::count_if(rows.begin(), rows.end(), [&](const std::vector<double>& row) {
    return std::all_of(row.begin(), row.end(), [&](double e) { return e <= percent; });
  });
  return rows.empty() ? 0 : 100 * static_cast<double>(within) / static_cast<double>(rows.size());
}

/// What is said of all rows of a quantity together.
enum class Statistic : std::uint8_t { worst, mean, median };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Statistic>{"worst", "mean", "median"};

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

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/comparison.hpp>
#endif
