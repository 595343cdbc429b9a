// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <vlmest/unit/error.hpp>

/// Prometheus' text exposition format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): what a
/// scrape of /metrics answers, and what node_exporter's textfile collector reads.
namespace vlmest::diagnose {

enum class MetricType : std::uint8_t { gauge, counter };
constexpr std::string_view name(MetricType t) { return t == MetricType::gauge ? "gauge" : "counter"; }

struct MetricLabel {
  std::string name, value;
};

struct MetricSample {
  std::vector<MetricLabel> labels;
  std::variant<std::int64_t, double> value;
};

/// All samples of one name. Base units, named at its end: _bytes, _seconds, _ratio; a counter ends with _total.
struct Metric {
  std::string name;
  std::string help;  ///< one sentence
  MetricType type = MetricType::gauge;
  std::vector<MetricSample> samples;
};

namespace prometheus {

/// `s` with `special` characters escaped, and valid UTF-8, which the format asks for: bytes that are none become
/// U+FFFD.
std::string escaped(std::string_view s, bool quotes);

inline std::string text(std::int64_t v) { return std::to_string(v); }
/// The shortest digits that mean this number.
inline std::string text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr};
}

/// [a-zA-Z_:][a-zA-Z0-9_:]*, for a label without the colons.
constexpr bool is_name(std::string_view s, bool label) {
  const auto letter = [label](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c == ':' && !label);
  };
  if (s.empty() || !letter(s.front())) return false;
  for (const char c : s)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

inline void check_name(std::string_view s, bool label) {
  if (!is_name(s, label))
    throw Error(std::string(label ? "label" : "metric"), "'" + std::string(s) + "' is no name in Prometheus' format",
                "letters, digits and underscores, no digit first");
}

}  // namespace prometheus

/// The metrics as text. One without samples is left out. Throws Error for a name that the format does not allow.
std::string prometheus_text(std::span<const Metric> metrics);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/watch/impl/prometheus.hpp>
#endif
