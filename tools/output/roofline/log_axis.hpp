// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vlmest/unit/rate.hpp>

namespace vlmest::tool {

/// A logarithmic axis: values from `low` to `high`, drawn from `begin` to `end` in pixels (either may be larger).
struct LogAxis {
  double low = 1, high = 10;
  double begin = 0, end = 1;

  /// Where a value above zero stands; outside of the ends for a value outside of the range.
  double operator()(double value) const;
  /// Pixels of a factor of ten, below zero where the axis runs backwards.
  double decade() const;
};

struct Tick {
  double value = 0;
  bool major = false;  ///< a power of ten, and with fewer than two of them 2 and 5 times one
};

/// The multiples 1 to 9 of the powers of ten on the axis.
std::vector<Tick> ticks(const LogAxis& axis);

/// An axis from `begin` to `end` for values that `add` is called with, with a factor `margin` of room on both sides.
class LogRange {
 public:
  /// Values that are not above zero have no place and are passed over.
  void add(double value);
  bool empty() const { return low_ == 0; }
  /// At least two decades long.
  LogAxis axis(double begin, double end, double margin) const;

 private:
  double low_ = 0, high_ = 0;
};

/// A count as a value of an axis.
inline double as_double(Flops f) { return static_cast<double>(f.value()); }
inline double as_double(Bytes b) { return static_cast<double>(b.value()); }

/// "20 GB/s", "0.5 B", "1.5 k": three significant digits at most, the prefix of the SI, and the unit.
std::string si(double value, std::string_view unit = {});

}  // namespace vlmest::tool
