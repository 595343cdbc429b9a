// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/json/hf/text.hpp>

/// Qwen's language models with experts out of a Hugging Face config: transformers 5.17,
/// models/qwen2_moe/configuration_qwen2_moe.py and models/qwen3_moe/configuration_qwen3_moe.py.
namespace vlmest::json::hf {

/// Sizes of the experts; `inner`, `experts` and `top_k` are the class's defaults.
inline MoeConfig read_experts(const Reader& t, MoeConfig d, std::int64_t inner, std::int64_t experts,
                              std::int64_t top_k) {
  d.inner = t.integer("moe_intermediate_size", inner, 1, 1 << 24);
  d.experts = t.integer(t.either("num_local_experts", "num_experts"), experts, 0, 1023);
  d.top_k = t.integer("num_experts_per_tok", top_k, 1, 1023);
  if (d.experts > 0 && d.top_k > d.experts)
    t.fail("num_experts_per_tok", std::to_string(d.top_k) + " of " + std::to_string(d.experts) + " experts",
           "give at most num_experts");
  return d;
}

/// Every decoder_sparse_step-th layer has experts but for those in mlp_only_layers; none where there are no experts.
inline std::vector<bool> sparse_layers(const Reader& t, std::int64_t layers, const MoeConfig& moe) {
  std::vector<bool> r;
  if (moe.experts == 0) return r;
  const std::int64_t step = t.integer("decoder_sparse_step", 1, 1, 1024);
  const std::vector<std::int64_t> dense = t.integers("mlp_only_layers", {});
  for (auto layer : dense)
    if (layer < 0 || layer >= layers) t.fail("mlp_only_layers", "layer " + std::to_string(layer) + " does not exist");
  for (std::int64_t i = 0; i < layers; ++i)
    r.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
  return r;
}

/// Qwen3MoeConfig: every layer slides, or none.
inline DecoderConfig read_qwen3_moe(const Reader& r) {
  QwenMoeConfig d;
  d.layers = text_model(r,
                        LlamaConfig{.vocab = 151936,
                                    .hidden = 2048,
                                    .intermediate = 6144,
                                    .layers = 24,
                                    .heads = 32,
                                    .kv_heads = 4,
                                    .head_dim = 64,
                                    .qk_norm = true},
                        4, std::nullopt);
  d.layers.qkv_bias = d.layers.o_bias = r.boolean("attention_bias", false);
  r.without_effect({"max_window_layers", "sliding_window"});  // all layers slide or none
  if (r.boolean("use_sliding_window", false)) {
    d.layers.window =
        r.has("sliding_window") ? r.optional_integer("sliding_window") : std::optional<std::int64_t>(4096);
    if (d.layers.window) d.layers.sliding.assign(static_cast<std::size_t>(d.layers.layers), true);
  }
  d.moe = read_experts(
      r,
      {.hidden = d.layers.hidden, .activation = d.layers.activation, .normalised = r.boolean("norm_topk_prob", false)},
      768, 128, 8);
  d.sparse = sparse_layers(r, d.layers.layers, d.moe);
  return d;
}

/// Qwen2MoeConfig. Throws Error for sliding layers, which no released checkpoint has.
inline DecoderConfig read_qwen2_moe(const Reader& r) {
  QwenMoeConfig d{.spare_mask = true};
  d.layers = text_model(r,
                        LlamaConfig{.vocab = 151936,
                                    .hidden = 2048,
                                    .intermediate = 5632,
                                    .layers = 24,
                                    .heads = 16,
                                    .kv_heads = 16,
                                    .head_dim = 128},
                        16, std::nullopt);
  d.layers.qkv_bias = r.boolean("qkv_bias", true);
  r.without_effect({"max_window_layers", "sliding_window"});
  if (r.boolean("use_sliding_window", false))
    r.fail("use_sliding_window", "sliding layers of this type are not modelled", "set it to false");
  d.moe = read_experts(r,
                       {.hidden = d.layers.hidden,
                        .activation = d.layers.activation,
                        .normalised = r.boolean("norm_topk_prob", false),
                        .shared = r.integer("shared_expert_intermediate_size", 5632, 1, 1 << 24)},
                       1408, 60, 4);
  d.sparse = sparse_layers(r, d.layers.layers, d.moe);
  return d;
}

}  // namespace vlmest::json::hf
