// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/json/op.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/report/measured_op.hpp>

namespace vlmest::json {

namespace benchmark {

/// Microseconds in one `time_unit` (Google Benchmark's user guide, "Setting the Time Unit").
inline double microseconds(const Reader& r) {
  const std::string unit = r.string("time_unit", "ns");
  if (unit == "ns") return 1e-3;
  if (unit == "us") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "s") return 1e6;
  r.fail("time_unit", "unknown unit '" + unit.substr(0, 16) + "'", "known: ns, us, ms, s");
}

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
inline std::optional<TileWalk> walk(const Reader& r) {
  const auto whole = [&](const char* key, int absent) {
    const double v = counter(r, key).value_or(absent);
    if (!(v >= 0 && v <= 65536) || v != std::floor(v)) r.fail(key, "is no whole number up to 65536", "leave it out");
    return static_cast<int>(v);
  };
  TileWalk w{.tile_m = whole("tile_m", 0), .tile_n = whole("tile_n", 0)};
  if (w.tile_m == 0 || w.tile_n == 0) return std::nullopt;
  w.cluster_m = std::max(1, whole("cluster_m", 1));
  w.cluster_n = std::max(1, whole("cluster_n", 1));
  w.split = std::max(1, whole("split_k", 1));
  w.column_bands = whole("column_bands", 1) != 0;
  w.turns = whole("turns", 1) != 0;
  return w;
}

}  // namespace benchmark

/// Why an entry of a benchmark's results holds nothing to compare; nothing where it does.
inline std::optional<std::string> nothing_measured(const nlohmann::json& entry, const std::string& where) {
  const Reader r(entry, where);
  // Older versions say error_occurred, newer ones skipped.
  if (r.boolean("error_occurred", false)) return r.string("error_message", "failed");
  if (r.given("skipped")) return r.string("skip_message", "skipped");
  if (const std::string label = r.string("label", ""); label.find('{') == std::string::npos)
    return "its label holds no operation";
  return std::nullopt;
}

/// One entry of Google Benchmark's results whose label is an operation as `vlmest op` reads it, with the counters of
/// docs/reference/measured-rows.md. Throws Error naming `where` and the key.
inline MeasuredOp read_benchmark(const nlohmann::json& entry, const std::string& where, int compute_capability) {
  const Reader r(entry, where);
  const SingleOp op = read_op(parse(r.string("label", ""), where + ".label"), where + ".label", compute_capability);
  MeasuredOp m;
  m.name = r.string("name", where);
  if (m.name.find('\n') != std::string::npos) r.fail("name", "has several lines", "a benchmark's name is one line");
  m.variant = benchmark::variant(m.name);
  m.op = op.op;
  m.peak = op.peak;
  const bool hot = std::string_view(m.name).ends_with("/hot");
  m.cold = benchmark::counter(r, "cold").value_or(hot ? 0 : 1) != 0;
  m.time_us = benchmark::counter(r, "real_time");
  if (m.time_us) *m.time_us *= benchmark::microseconds(r);
  // Where the kernels' own durations were recorded, they count: the sum of a run's kernels is what estimates are of.
  if (const auto kernels = benchmark::counter(r, "kernel_us")) m.time_us = kernels;
  const auto read = benchmark::counter(r, "dram_read_bytes"), written = benchmark::counter(r, "dram_written_bytes");
  if (read && written) m.dram_bytes = *read + *written;
  m.device_bytes = benchmark::counter(r, "device_bytes");
  m.tensor_ops = benchmark::counter(r, "tensor_ops");
  m.walk = benchmark::walk(r);
  return m;
}

}  // namespace vlmest::json
