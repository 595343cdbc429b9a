// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/device/efficiency.hpp>
#include <vlmest/json/device_values.hpp>

/// A device's measured efficiencies as JSON: read and written by one list of their fields.
namespace vlmest::efficiency_json {

using device_json::fail;
using device_json::Place;
using nlohmann::json;

/// A time, and the unit that its key ends with.
struct Unit {
  double seconds;
};
inline constexpr Unit us{1e-6}, ns{1e-9}, ps{1e-12};
/// A factor that may be nothing.
struct Share {};
inline constexpr Share share;

template <class E, class F>
requires std::same_as<std::remove_const_t<E>, MatmulEfficiency>
void fields(E& e, F f) {
  f("rate", e.rate);
  f("bandwidth", e.bandwidth);
  f("start_us", e.start, us);
  f("fill_us", e.fill, us);
  f("step_us", e.step, us);
  f("load_ns", e.load, ns);
  f("epilogue_ps", e.epilogue, ps);
  f("split_us", e.split, us);
  f("reduction_ps", e.reduction, ps);
  f("bias_us", e.bias, us);
  f("tail", e.tail);
  f("overlap", e.overlap);
  f("sectors", e.sectors);
  f("half_sectors", e.half_sectors);
  f("sectors_written", e.sectors_written);
  f("half_sectors_written", e.half_sectors_written);
  f("half_sectors_rewritten", e.half_sectors_rewritten, share);
  f("shared_load", e.shared_load, share);
  f("correction", e.correction);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, FewRowsEfficiency>
void fields(E& e, F f) {
  f("start_us", e.start, us);
  f("chain_ns", e.chain, ns);
  f("dot_ns", e.dot, ns);
  f("element_ns", e.element, ns);
  f("blocks_us", e.blocks, us);
  f("split_us", e.split, us);
  f("two_ns", e.two, ns);
  f("three_ns", e.three, ns);
  f("four_ns", e.four, ns);
  f("row_ns", e.row, ns);
  f("column_ps", e.column, ps);
  f("cell_ps", e.cell, ps);
  f("bias_us", e.bias, us);
  f("bandwidth", e.bandwidth);
  f("correction", e.correction);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, AlignedMatmulEfficiency>
void fields(E& e, F f) {
  f("bytes16", e.bytes16);
  f("bytes4", e.bytes4);
  f("bytes2", e.bytes2);
  f("few_rows", e.few_rows);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, DecodeEfficiency>
void fields(E& e, F f) {
  f("start_us", e.start, us);
  f("step64_us", e.step64, us);
  f("step128_us", e.step128, us);
  f("step256_us", e.step256, us);
  f("block_us", e.block, us);
  f("shared", e.shared);
  f("combine_us", e.combine, us);
  f("partial_ps", e.partial, ps);
  f("bandwidth", e.bandwidth);
  f("overlap", e.overlap);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, AttentionEfficiency>
void fields(E& e, F f) {
  f("start_us", e.start, us);
  f("step64_us", e.step64, us);
  f("step128_us", e.step128, us);
  f("step256_us", e.step256, us);
  f("ragged_us", e.ragged, us);
  f("mask64_us", e.mask64, us);
  f("mask128_us", e.mask128, us);
  f("mask256_us", e.mask256, us);
  f("mask_odd_us", e.mask_odd, us);
  f("block_us", e.block, us);
  f("diagonal_us", e.diagonal, us);
  f("longest", e.longest);
  f("bandwidth", e.bandwidth);
  f("overlap", e.overlap);
  f("sustained", e.sustained);
  f("boost_us", e.boost, us);
  f("backward", e.backward);
  f("fp32_64", e.fp32_64);
  f("fp32_128", e.fp32_128);
  f("wide_column_ns", e.wide_column, ns);
  f("wide_wait_us", e.wide_wait, us);
  f("wide_mask_us", e.wide_mask, us);
  f("decode", e.decode);
}
template <class E, class F>
requires std::derived_from<std::remove_const_t<E>, MemoryEfficiency>
void fields(E& e, F f) {
  f("start_us", e.start, us);
  f("bandwidth", e.bandwidth);
  f("cached", e.cached);
  f("element_ps", e.element, ps);
  f("latency_us", e.latency, us);
  f("mixed", e.mixed, share);
  if constexpr (std::derived_from<std::remove_const_t<E>, RowEfficiency>) f("vector_us", e.vector, us);
  if constexpr (std::derived_from<std::remove_const_t<E>, FftKernel>) {
    f("mixed_radix_ps", e.mixed_radix, ps);
    f("misaligned_ps", e.misaligned, ps);
    f("butterfly_ps", e.butterfly, ps);
    f("matrix_ps", e.matrix, ps);
    f("chirp_ps", e.chirp, ps);
  }
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, MemoryEfficiencies>
void fields(E& e, F f) {
  for (std::size_t i = 0; i < of_access.size(); ++i) {
    // Softmaxes are rows of their own.
    if (static_cast<Access>(i) == Access::fused) {
      f("softmax", e.softmax);
      f("warp_softmax", e.warp_softmax);
    }
    f(words_of<Access>[i].data(), e.*of_access[i]);
  }
  f("fused_norm", e.fused_norm);
  f("fused_softmax", e.fused_softmax);
  f("dependent_ns", e.dependent, ns);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, FftEfficiency>
void fields(E& e, F f) {
  f("rows", e.rows);
  f("columns", e.columns);
  f("row_parts", e.row_parts);
  f("column_parts", e.column_parts);
  f("real", e.real);
  f("grid", e.grid);
  f("convolution", e.convolution);
  f("repack", e.repack);
  f("copy", e.copy);
  f("block_ps", e.block, ps);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, DepthwiseEfficiency>
void fields(E& e, F f) {
  f("result_ps", e.result, ps);
  f("tap_ps", e.tap, ps);
  f("input_result_ps", e.input_result, ps);
  f("input_tap_ps", e.input_tap, ps);
  f("weight_tap_ps", e.weight_tap, ps);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, SolveEfficiency>
void fields(E& e, F f) {
  f("row_us", e.row, us);
  f("element_ps", e.element, ps);
  f("term_ps", e.term, ps);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, DeltaRuleKernel>
void fields(E& e, F f) {
  f("start_us", e.start, us);
  f("wait_us", e.wait, us);
  f("block_us", e.block, us);
  f("bandwidth", e.bandwidth);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, DeltaRuleEfficiency>
void fields(E& e, F f) {
  for (std::size_t i = 0; i < e.kernels.size(); ++i) f(words_of<DeltaRule::Kind>[i].data(), e.kernels[i]);
}
template <class E, class F>
requires std::same_as<std::remove_const_t<E>, Efficiency>
void fields(E& e, F f) {
  f("half", e.half);
  f("tf32", e.tf32);
  f("fp8", e.fp8);
  f("fp32", e.fp32);
  f("grouped", e.grouped);
  f("convolution", e.convolution);
  f("converted_convolution", e.converted_convolution);
  f("depthwise", e.depthwise);
  f("solve", e.solve);
  f("delta_rule", e.delta_rule);
  f("attention", e.attention);
  f("memory", e.memory);
  f("fft", e.fft);
}

inline constexpr std::array<const char*, 3> axes{"m", "n", "k"};

/// Sizes of each axis, and in percent how much longer than modelled, the last axis fastest.
void read(Correction<3>& c, const json& j, const Place& at);

inline json write(const Correction<3>& c) {
  json j = json::object();
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (const double k : c.knots[a]) j[axes[a]].push_back(std::round(std::exp2(k)));
  for (const double f : c.log_factor) j["percent"].push_back(std::round(std::expm1(f) * 1000) / 10);
  return j;
}

/// Reads an object: what it does not give stays as it is. Throws Error for unknown keys and for values that cannot be.
template <class E>
void read(E& e, const json& j, const Place& at) {
  std::vector<std::string> known;
  fields(e, [&](const char* key, auto& value, auto... unit) {
    known.emplace_back(key);
    if (!j.is_object() || !j.contains(key)) return;
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (std::same_as<T, double>) {
      value = device_json::number(j, at, key, sizeof...(unit) > 0);
    } else if constexpr (std::same_as<T, Seconds>) {
      value = {device_json::number(j, at, key, true) * (unit.seconds * ...)};
      if (value.value > 1) fail(at / key, "is " + j.at(key).dump() + ", more than a second", "check the unit");
    } else {
      read(value, j.at(key), at / key);
    }
  });
  device_json::expect_among(j, at, known);
}

template <class E>
json write(const E& e) {
  json j = json::object();
  fields(e, [&](const char* key, const auto& value, auto... unit) {
    using T = std::remove_cvref_t<decltype(value)>;
    const auto digits = [](double x) { return std::stod(std::to_string(x)); };
    if constexpr (std::same_as<T, double>) {
      j[key] = digits(value);
    } else if constexpr (std::same_as<T, Seconds>) {
      j[key] = digits(value.value / (unit.seconds * ...));
    } else if constexpr (std::same_as<T, Correction<3>>) {
      if (!value.empty()) j[key] = write(value);
    } else {
      j[key] = write(value);
    }
  });
  return j;
}

}  // namespace vlmest::efficiency_json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/efficiency.hpp>
#endif
