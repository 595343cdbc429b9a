// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <vlmest/json/known_keys.hpp>
#include <vlmest/report/compare_run.hpp>

namespace vlmest::json {

/// What a file says of all its rows.
struct RunHeader {
  /// "decode_kv_len": "tokens in the cache after the step". Without it the figure is that before the step.
  bool decode_kv_len_after_step = false;
  /// "cache_emptied": true, between the first training step and the measured second one.
  bool cache_emptied = false;
};

namespace measured_run {

inline constexpr std::array<std::string_view, 4> modes{"infer", "inference", "train", "training"};

/// As torch and the recorder spell them, or by its word.
Optimizer optimizer(const Reader& r);

/// By its word, or as transformers spells it.
AttentionKind attention(const Reader& r);

/// Given by `mode`; rows without one that say what trains are training steps.
inline bool training(const Reader& r) {
  if (!r.given("mode")) return r.given("trainable");
  return one_of(r, "mode", r.string("mode", ""), modes) >= 2;
}

Plan plan(const Reader& r);

/// Tokens decoded when the cache is as long as in the measured step, its own token included.
inline std::int64_t new_tokens(const Reader& r, const RunHeader& header, std::int64_t absent) {
  const auto kv = r.optional_integer("decode_kv_len"), prompt = r.optional_integer("seq");
  if (!kv || !prompt) return absent;
  const std::int64_t n = *kv - *prompt + (header.decode_kv_len_after_step ? 0 : 1);
  if (n < 1) r.fail("decode_kv_len", "is shorter than the prompt", "the cache holds seq tokens before the first step");
  return n;
}

/// Every number of the row by its key; of the known quantities nothing but numbers.
inline auto figures(const Reader& r) {
  decltype(MeasuredRun::figures) all;
  for (const auto& [key, value] : r.value().items()) {
    if (!value.is_number()) continue;
    const double v = value.get<double>();
    if (!std::isfinite(v) || v < 0) r.fail(key.substr(0, 64).c_str(), "cannot have been measured: " + value.dump());
    all[key] = v;
  }
  for (const auto& q : run_quantities)
    if (const std::string key(q.name); r.given(key.c_str()) && !all.contains(key))
      r.fail(key.c_str(), "expected a number");
  return all;
}

}  // namespace measured_run

/// A row of whole-model measurements (docs/reference/measured-rows.md). Other keys than those are left alone. Throws
/// Error naming `where` and the key.
MeasuredRun read_measured_run(const nlohmann::json& row, const std::string& where, const RunHeader& header);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/measured_run.hpp>
#endif
