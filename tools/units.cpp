// SPDX-License-Identifier: Apache-2.0
#include "units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include "numbers.hpp"

namespace vlmest::tool {
namespace {

/// Three significant digits without an exponent: what rounds up to another digit has one less behind the point.
std::string digits(double v) { return fmt::format("{:.{}f}", v, v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2); }

}  // namespace

std::string show(Bytes b) {
  static constexpr std::array<const char*, 6> names{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto v = static_cast<double>(b.value());
  std::size_t i = 0;
  while (v >= 999.5 && i + 1 < names.size()) {
    v /= 1024;
    ++i;
  }
  return i == 0 ? fmt::format("{} B", b.value()) : digits(v) + " " + names[i];
}

std::string show_count(std::int64_t n) {
  static constexpr std::array<const char*, 6> names{"", " k", " M", " B", " T", " P"};
  auto v = static_cast<double>(n);
  std::size_t i = 0;
  while (v >= 999.5 && i + 1 < names.size()) {
    v /= 1000;
    ++i;
  }
  return i == 0 ? fmt::format("{}", n) : digits(v) + names[i];
}

std::string show(Seconds s) {
  if (s.ms() >= 999.5) return digits(s.value) + " s";
  if (s.us() >= 999.5) return digits(s.ms()) + " ms";
  return digits(s.us()) + " us";
}

std::string nothing_or(Bytes b) { return b == Bytes{} ? "-" : show(b); }
std::string nothing_or(Seconds s) { return s.value == 0 ? "-" : show(s); }
std::string nothing_or(Flops f) { return f == Flops{} ? "-" : show_count(f.value()); }

double significant(double x) { return std::strtod(fmt::format("{:.6g}", x).c_str(), nullptr); }

std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n < 0 ? -n : n);
  for (int i = static_cast<int>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<std::size_t>(i), ",");
  return n < 0 ? "-" + s : s;
}

Bytes parse_size(const std::string& text, const std::string& where) {
  const auto at = std::min(text.find_first_not_of("0123456789.-"), text.size());
  const auto number = decimal_number(text.substr(0, at));
  std::string unit = text.substr(std::min(text.find_first_not_of(' ', at), text.size()));
  const std::string as_written = text.substr(0, at);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::toupper(c); });
  if (number && *number >= 0 && (unit.empty() || unit == "K" || unit == "M" || unit == "G" || unit == "T")) {
    const std::string prefix = unit.empty() ? "G" : unit;
    throw Error(
        where, "'" + text + "' has no unit",
        "write " + as_written + prefix + "iB (powers of 1024) or " + as_written + prefix + "B (powers of 1000)");
  }
  double scale = 0;
  static constexpr std::array<const char*, 5> prefixes{"", "K", "M", "G", "T"};
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string p = prefixes[i];
    if (unit == p + "B") scale = std::pow(1000.0, static_cast<double>(i));
    if (i > 0 && unit == p + "IB") scale = std::pow(1024.0, static_cast<double>(i));
  }
  const double bytes = number.value_or(-1) * scale;
  if (scale == 0 || !(bytes >= 0) || bytes > 9e18 || (bytes > 0 && bytes < 1))
    throw Error(where, "'" + text + "' is not a size", "write 80GiB, 80GB or 512MiB");
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace vlmest::tool
