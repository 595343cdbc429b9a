// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava/family.hpp>
#include <vlmest/nn/image_processor/llava.hpp>

#include "training_support.hpp"

/// What the tests of GPT-OSS, InternLM2, DeepSeek-V3, Mistral 4, Ministral 3, Granite and Phi-3 share: small decoders
/// under a tower that stays out of the way.
namespace vlmest::test {

/// A model of text alone: no picture is given to its tower.
inline Vlm around(DecoderConfig language, bool tied = false) {
  Vlm m;
  const std::int64_t hidden = width(language);
  m.family = LlavaFamily{
      .vision =
          ClipVision{.hidden = 32, .intermediate = 64, .layers = 1, .heads = 2, .image_size = 28, .patch_size = 14},
      .projector = {.in = 32, .out = hidden},
      .language = std::move(language),
      .tied = tied};
  m.image_processor = image_processor::Llava{.image_size = 28, .patch_size = 14};
  m.native = {28, 28};
  return m;
}

inline LlamaConfig small_llama(std::int64_t layers) {
  return {.vocab = 96, .hidden = 64, .intermediate = 80, .layers = layers, .heads = 4, .kv_heads = 2, .head_dim = 16};
}
/// Layers of full attention and no others, unless `sliding` says more.
inline GptOssConfig small_gpt_oss(std::int64_t layers, std::vector<bool> sliding = {}) {
  GptOssConfig g{
      .vocab = 96, .hidden = 64, .intermediate = 40, .layers = layers, .heads = 4, .kv_heads = 2, .head_dim = 16};
  g.moe = {.hidden = 64,
           .inner = 40,
           .experts = 6,
           .top_k = 2,
           .inputs_first = true,
           .biased = true,
           .gate = ExpertGate::clamped_pairs};
  g.window = 8;
  g.sliding = sliding.empty() ? std::vector<bool>(static_cast<std::size_t>(layers), false) : std::move(sliding);
  return g;
}
inline DeepseekConfig small_deepseek_v3(std::int64_t layers, std::int64_t dense = 0) {
  DeepseekConfig g{.vocab = 96, .intermediate = 80, .layers = layers, .dense_layers = dense};
  g.attention = {.hidden = 64, .heads = 4, .q_rank = 24, .kv_rank = 20, .rope_dim = 8, .plain_dim = 12, .v_dim = 16};
  g.moe = {.experts = {.hidden = 64, .inner = 40, .experts = 6, .top_k = 2}, .groups = 2, .top_groups = 1};
  return g;
}
inline DeepseekConfig small_mistral4(std::int64_t layers, std::int64_t dense = 0) {
  DeepseekConfig g = small_deepseek_v3(layers, dense);
  g.attention.scaled_queries = true;
  g.moe.router = GroupedRouter::softmax;
  return g;
}
inline InternLm2Config small_internlm2(std::int64_t layers) {
  return {.vocab = 96,
          .hidden = 64,
          .intermediate = 80,
          .layers = layers,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .positions = 64,
          .bias = false};
}
inline LlamaConfig small_ministral3(std::int64_t layers) {
  LlamaConfig g = small_llama(layers);
  g.query_scale = true;
  return g;
}
inline LlamaConfig small_granite(std::int64_t layers) {
  LlamaConfig g = small_llama(layers);
  g.multipliers = true;
  return g;
}
inline LlamaConfig small_phi3(std::int64_t layers) {
  LlamaConfig g = small_llama(layers);
  g.packed = true;
  return g;
}

/// Two sequences of ten tokens.
inline Plan text_plan(AttentionKind attention = AttentionKind::sdpa) {
  Plan p;
  p.batch = 2;
  p.images = 0;
  p.text = 10;
  p.attention = attention;
  return p;
}

}  // namespace vlmest::test
