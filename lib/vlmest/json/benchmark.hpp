// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/json/op.hpp>
#include <vlmest/report/measured_op.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::json {

namespace benchmark {

/// Microseconds in one `time_unit` (Google Benchmark's user guide, "Setting the Time Unit").
double microseconds(const Reader& r);

/// A counter that can have been measured.
inline std::optional<double> counter(const Reader& r, const char* key) {
  if (!r.given(key)) return std::nullopt;
  const double v = r.number(key, 0);
  if (!std::isfinite(v) || v < 0) r.fail(key, "is no figure that can be measured", "remove it");
  return v;
}

/// OP/VARIANT/KEY:VALUE/…/CACHE: the second word, where there is one before the keys begin.
inline std::string variant(std::string_view name) {
  const auto begin = name.find('/');
  if (begin == std::string_view::npos) return {};
  const std::string_view word = name.substr(begin + 1, name.find('/', begin + 1) - begin - 1);
  if (word.find(':') != std::string_view::npos || word == "cold" || word == "hot") return {};
  return std::string(word);
}

/// How a product's kernel goes over its result; nothing where its tile is not told.
std::optional<TileWalk> walk(const Reader& r);

}  // namespace benchmark

/// Why an entry of a benchmark's results holds nothing to compare; nothing where it does.
std::optional<std::string> nothing_measured(const nlohmann::json& entry, const std::string& where);

/// One entry of Google Benchmark's results whose label is an operation as `vlmest op` reads it, with the counters of
/// docs/reference/measured-rows.md. Throws Error naming `where` and the key.
MeasuredOp read_benchmark(const nlohmann::json& entry, const std::string& where, int compute_capability);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/benchmark.hpp>
#endif
