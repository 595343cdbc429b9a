// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <vlmest/json/known_keys.hpp>
#include <vlmest/report/compare_run.hpp>

namespace vlmest::json {

/// What a file says of all its rows.
struct RunHeader {
  /// "decode_kv_len": "tokens in the cache after the step". Without it the figure is that before the step.
  bool decode_kv_len_after_step = false;
};

namespace measured_run {

inline constexpr std::array<std::string_view, 4> modes{"infer", "inference", "train", "training"};
inline constexpr std::array<std::string_view, 4> attentions{"eager", "sdpa", "flash", "flash_attention_2"};

/// As torch and the recorder spell them, or as `--optimizer` takes them.
inline Optimizer optimizer(const Reader& r) {
  static constexpr std::array<std::pair<std::string_view, Optimizer>, 5> also{
      {{"adamw_fused", Optimizer::adamw_fused},
       {"adamw_8bit", Optimizer::adamw_8bit},
       {"adamw_bnb_8bit", Optimizer::adamw_bnb_8bit},
       {"sgdm", Optimizer::sgd_momentum},
       {"sgd_momentum", Optimizer::sgd_momentum}}};
  const std::string word = r.string("optim", "adamw");
  for (const auto& [other, o] : also)
    if (other == word) return o;
  return static_cast<Optimizer>(one_of(r, "optim", word, optimizer_names));
}

inline AttentionKind attention(const Reader& r) {
  switch (one_of(r, "attn", r.string("attn", "sdpa"), attentions)) {
    case 0: return AttentionKind::eager;
    case 1: return AttentionKind::sdpa;
    default: return AttentionKind::flash;
  }
}

/// Given by `mode`; rows without one that say what trains are training steps.
inline bool training(const Reader& r) {
  if (!r.given("mode")) return r.given("trainable");
  return one_of(r, "mode", r.string("mode", ""), modes) >= 2;
}

inline Plan plan(const Reader& r) {
  static constexpr std::array<std::string_view, 2> logits{"last", "all"};
  Plan p;
  p.batch = r.integer_required("batch");
  p.text = r.integer_required("text", 0);
  p.markers = false;  // a row's text is every token that is no image feature
  p.images = r.integer("images", 1, 0, 4096);
  if (r.given("hw")) std::tie(p.image_height, p.image_width) = pair_required(r, "hw", 1 << 20);
  p.vision_chunk = r.integer("vision_chunk", 0, 0, most_sequences);
  try {
    p.dtype = parse_dtype(r.string("dtype", "bf16"));
  } catch (const Error& e) {
    r.fail("dtype", e.what_happened, e.hint);
  }
  p.attention = attention(r);
  if (one_of(r, "logits", r.string("logits", "last"), logits) == 1) p.logits = Logits::all;
  p.optimizer = optimizer(r);
  p.amp = r.boolean("amp", false);
  if (r.boolean("ckpt", false)) p.checkpointing = Checkpointing::full;
  p.lora.rank = r.integer("lora", 0, 0, 1 << 16);
  p.trainable.vision = !r.boolean("freeze_vision", false);
  p.gradient_accumulation = r.integer("gradient_accumulation", 1, 1, 1 << 20);
  if (p.amp && p.dtype != DType::fp32)
    r.fail("amp", "needs fp32 weights", "autocast runs over float32 weights: \"dtype\": \"float32\"");
  return p;
}

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
inline MeasuredRun read_measured_run(const nlohmann::json& row, const std::string& where, const RunHeader& header) {
  const Reader r(row, where, "docs/reference/measured-rows.md lists the keys");
  MeasuredRun m;
  m.model = r.string("model", "");
  const bool printable = std::none_of(m.model.begin(), m.model.end(), [](unsigned char c) { return c < ' '; });
  if (m.model.empty() || m.model.size() > 256 || !printable)
    r.fail("model", m.model.empty() ? "missing" : "is no name", "give a shipped model's name, or a config's");
  m.config = r.string("config", "");
  if (r.given("image")) m.image = r.object("image").value().dump();
  m.training = measured_run::training(r);
  m.out_of_memory = r.given("oom") && row["oom"] != false;
  m.figures = measured_run::figures(r);
  m.plan = measured_run::plan(r);
  m.plan.new_tokens = measured_run::new_tokens(r, header, m.plan.new_tokens);
  return m;
}

}  // namespace vlmest::json
