// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace benchmark {

VLMEST_INLINE double microseconds(const Reader& r) {
  const std::string unit = r.string("time_unit", "ns");
  if (unit == "ns") return 1e-3;
  if (unit == "us") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "s") return 1e6;
  r.fail("time_unit", "unknown unit '" + unit.substr(0, 16) + "'", "known: ns, us, ms, s");
}

VLMEST_INLINE std::optional<TileWalk> walk(const Reader& r) {
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

VLMEST_INLINE std::optional<std::string> nothing_measured(const nlohmann::json& entry, const std::string& where) {
  const Reader r(entry, where);
  // Older versions say error_occurred, newer ones skipped.
  if (r.boolean("error_occurred", false)) return r.string("error_message", "failed");
  if (r.given("skipped")) return r.string("skip_message", "skipped");
  if (const std::string label = r.string("label", ""); label.find('{') == std::string::npos)
    return "its label holds no operation";
  return std::nullopt;
}

VLMEST_INLINE MeasuredOp read_benchmark(const nlohmann::json& entry, const std::string& where, int compute_capability) {
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
