// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <vlmest/unit/units.hpp>

namespace vlmest {

/// Time in seconds.
struct Seconds {
  double value = 0;
  constexpr auto operator<=>(const Seconds&) const = default;
  constexpr Seconds& operator+=(Seconds o) {
    value += o.value;
    return *this;
  }
  friend constexpr Seconds operator+(Seconds a, Seconds b) { return a += b; }
  friend constexpr Seconds operator*(Seconds a, double k) { return {a.value * k}; }
  constexpr double ms() const { return value * 1e3; }
  constexpr double us() const { return value * 1e6; }
};

/// Bytes per second.
struct Bandwidth {
  double value = 0;
  constexpr auto operator<=>(const Bandwidth&) const = default;
};

/// Floating-point operations per second.
struct FlopRate {
  double value = 0;
  constexpr auto operator<=>(const FlopRate&) const = default;
};

constexpr Seconds operator/(Bytes b, Bandwidth r) { return {static_cast<double>(b.value()) / r.value}; }
constexpr Seconds operator/(Flops f, FlopRate r) { return {static_cast<double>(f.value()) / r.value}; }

}  // namespace vlmest
