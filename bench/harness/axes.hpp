// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <bench/harness/point.hpp>

namespace vlmest::bench {

/// A key of an op and the values that it takes in a sweep.
struct Axis {
  std::string key;
  std::vector<OpJson> values;
};

/// The op with every combination of the axes' values; the last axis changes fastest.
inline std::vector<OpJson> product(const std::string& op, const std::vector<Axis>& axes) {
  std::vector<OpJson> r{OpJson{{"op", op}}};
  for (const Axis& axis : axes) {
    std::vector<OpJson> longer;
    longer.reserve(r.size() * axis.values.size());
    for (const OpJson& one : r)
      for (const OpJson& value : axis.values) {
        longer.push_back(one);
        longer.back()[axis.key] = value;
      }
    r = std::move(longer);
  }
  return r;
}

/// Random sizes. The standard fixes what mt19937_64 gives but not what its distributions do, so these are our own:
/// the same seed gives the same points everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  /// An integer in [low, high], uniform in its logarithm.
  std::int64_t size(std::int64_t low, std::int64_t high) {
    const double a = std::log(static_cast<double>(low)), b = std::log(static_cast<double>(high) + 1);
    const auto n = static_cast<std::int64_t>(std::exp(a + (b - a) * uniform()));
    return n < low ? low : n > high ? high : n;
  }
  /// The same as a multiple of `step`.
  std::int64_t size(std::int64_t low, std::int64_t high, std::int64_t step) {
    const std::int64_t n = (size(low, high) + step / 2) / step * step;
    return n < low ? (low + step - 1) / step * step : n > high ? high / step * step : n;
  }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(uniform() * static_cast<double>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace vlmest::bench
