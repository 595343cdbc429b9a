// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace vlmest::tool {
namespace {

constexpr std::string_view decimal_digits = "0123456789";

/// What stands behind a '-', if that is there.
std::string_view magnitude(std::string_view text) { return text.starts_with('-') ? text.substr(1) : text; }

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text) {
  const std::string_view digits = magnitude(text);
  if (digits.empty() || digits.find_first_not_of(decimal_digits) != std::string_view::npos) return std::nullopt;
  std::int64_t n = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), n).ec != std::errc()) return std::nullopt;
  return n;
}

std::optional<double> decimal_number(std::string_view text) {
  const std::string_view digits = magnitude(text);
  const auto point = digits.find('.');
  const std::string_view before = digits.substr(0, point);
  const std::string_view after = point == std::string_view::npos ? "0" : digits.substr(point + 1);
  for (const std::string_view part : {before, after})
    if (part.empty() || part.find_first_not_of(decimal_digits) != std::string_view::npos) return std::nullopt;
  double x = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(x)) return std::nullopt;
  return x;
}

std::string plain(double x) { return fmt::format("{:g}", x); }

}  // namespace vlmest::tool
