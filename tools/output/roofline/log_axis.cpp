// SPDX-License-Identifier: Apache-2.0
#include "log_axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace vlmest::tool {

double LogAxis::operator()(double value) const { return begin + std::log10(value / low) * decade(); }

double LogAxis::decade() const { return (end - begin) / std::log10(high / low); }

std::vector<Tick> ticks(const LogAxis& axis) {
  std::vector<Tick> r;
  int powers = 0;
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
  // The ends are on the axis even where their logarithms are rounded.
  const double low = axis.low * (1 - 1e-12), high = axis.high * (1 + 1e-12);
  for (int exponent = first; exponent <= last; ++exponent)
    for (int digit = 1; digit <= 9; ++digit) {
      // Below one by division: 0.1 is nearer to its decimal than 1 times a rounded tenth is.
      const double power = std::pow(10.0, std::abs(exponent));
      const double value = exponent < 0 ? digit / power : digit * power;
      if (value < low || value > high) continue;
      powers += digit == 1;
      r.push_back({value, digit == 1});
    }
  if (powers < 2)
    for (Tick& t : r) {
      const auto digit = std::lround(t.value / std::pow(10.0, std::floor(std::log10(t.value * (1 + 1e-12)))));
      t.major = t.major || digit == 2 || digit == 5;
    }
  return r;
}

void LogRange::add(double value) {
  if (!(value > 0) || !std::isfinite(value)) return;
  low_ = low_ == 0 ? value : std::min(low_, value);
  high_ = std::max(high_, value);
}

LogAxis LogRange::axis(double begin, double end, double margin) const {
  LogAxis a{low_ / margin, high_ * margin, begin, end};
  if (const double missing = 100 / (a.high / a.low); missing > 1) {
    a.low /= std::sqrt(missing);
    a.high *= std::sqrt(missing);
  }
  return a;
}

std::string si(double value, std::string_view unit) {
  static constexpr std::array<const char*, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t i = 0;
  while (value >= 999.5 && i + 1 < prefixes.size()) {
    value /= 1000;
    ++i;
  }
  const std::string with_prefix = std::string(prefixes[i]) + std::string(unit);
  return fmt::format("{:.3g}{}{}", value, with_prefix.empty() ? "" : " ", with_prefix);
}

}  // namespace vlmest::tool
