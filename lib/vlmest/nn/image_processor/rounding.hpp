// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

// The processors are Python: their roundings, in float64, decide at the borders between two token counts.
namespace vlmest::image_processor {

/// a / b rounded up, a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Python's round(a / b) for a >= 0, b > 0: to nearest, ties to even. Exact in integers: a double quotient of numbers
/// this small is never pulled onto a tie.
constexpr std::int64_t round_div(std::int64_t a, std::int64_t b) {
  const auto q = a / b, r = a % b;
  return q + ((2 * r > b || (2 * r == b && q % 2 == 1)) ? 1 : 0);
}

/// Python's int(x).
constexpr std::int64_t to_int(double x) { return static_cast<std::int64_t>(x); }

/// Python's int(round(x, 7)) for x >= 0: the rounding only matters where it reaches the next integer.
constexpr std::int64_t to_int_round7(double x) {
  const auto n = to_int(x);
  return static_cast<double>(n + 1) - x <= 0.5e-7 ? n + 1 : n;
}

/// Python's a // b on floats, a >= 0, b > 0 (CPython floatobject.c, float_floor_div): made from the exact remainder, so
/// it is not always floor(a / b).
inline double floor_div(double a, double b) {
  const double q = (a - std::fmod(a, b)) / b;
  const double f = std::floor(q);
  return q - f > 0.5 ? f + 1 : f;
}

}  // namespace vlmest::image_processor
