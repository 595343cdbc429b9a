// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/json/hf/qwen_vl.hpp>

/// Qwen3-VL, dense and with experts: transformers 5.17, models/qwen3_vl/configuration_qwen3_vl.py and
/// models/qwen3_vl_moe/configuration_qwen3_vl_moe.py.
namespace vlmest::json::hf {

/// Qwen3VLVisionConfig and Qwen3VLMoeVisionConfig, which agree.
inline Qwen3VlVision read_qwen3_vl_vision(const Reader& v) {
  Qwen3VlVision g = qwen_tower(v, Qwen3VlVision{}, "hidden_size", "gelu_pytorch_tanh");
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.out_hidden = v.integer("out_hidden_size", g.out_hidden, 1, 1 << 20);
  g.positions = v.integer("num_position_embeddings", g.positions, 1, 1 << 24);
  g.deepstack = v.integers("deepstack_visual_indexes", g.deepstack);
  for (auto layer : g.deepstack)
    if (layer < 0 || layer >= g.layers)
      v.fail("deepstack_visual_indexes", "layer " + std::to_string(layer) + " does not exist",
             "the tower has " + std::to_string(g.layers) + " layers");
  return g;
}

inline void read_qwen3_attention(const Reader& t, LlamaConfig& g) {
  g.qkv_bias = g.o_bias = t.boolean("attention_bias", false);
}

/// mrope_section: three counts, of which transformers uses those of rows and columns.
inline std::vector<std::int64_t> three_sections(const Reader& t, std::vector<std::int64_t> absent) {
  std::vector<std::int64_t> s = mrope_sections(t, std::move(absent));
  if (s.size() < 3) t.fail("mrope_section", "expected three counts: time, rows, columns");
  return s;
}

/// Qwen3VLTextConfig.
inline Qwen3VlTextConfig read_qwen3_vl_text(const Reader& t) {
  Qwen3VlTextConfig d;
  d.layers = text_model(t, d.layers, 32, 128);
  read_qwen3_attention(t, d.layers);
  d.sections = three_sections(t, d.sections);
  return d;
}

/// Qwen3VLMoeTextConfig: every decoder_sparse_step-th layer has experts but for those in mlp_only_layers.
inline Qwen3VlTextConfig read_qwen3_vl_moe_text(const Reader& t) {
  Qwen3VlTextConfig d;
  d.layers = {.vocab = 151936,
              .hidden = 2048,
              .intermediate = 5632,
              .layers = 24,
              .heads = 16,
              .kv_heads = 16,
              .head_dim = 128,
              .qk_norm = true};
  d.layers = text_model(t, d.layers, 16, std::nullopt);
  read_qwen3_attention(t, d.layers);
  d.sections = three_sections(t, d.sections);
  const char* count = t.given("num_experts") ? "num_experts" : "num_local_experts";
  d.moe = {.hidden = d.layers.hidden,
           .inner = t.integer("moe_intermediate_size", 1408, 1, 1 << 24),
           .experts = t.integer(count, 60, 0, 1023),
           .top_k = t.integer("num_experts_per_tok", 4, 1, 1023),
           .activation = d.layers.activation};
  if (d.moe.experts == 0) return d;
  if (d.moe.top_k > d.moe.experts)
    t.fail("num_experts_per_tok", std::to_string(d.moe.top_k) + " of " + std::to_string(d.moe.experts) + " experts",
           "give at most num_experts");
  const std::int64_t step = t.integer("decoder_sparse_step", 1, 1, 1024);
  const std::vector<std::int64_t> dense = t.integers("mlp_only_layers", {});
  for (auto layer : dense)
    if (layer < 0 || layer >= d.layers.layers)
      t.fail("mlp_only_layers", "layer " + std::to_string(layer) + " does not exist");
  for (std::int64_t i = 0; i < d.layers.layers; ++i)
    d.sparse.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
  return d;
}

inline Vlm qwen3_vl(const Reader& r, const char* type, Qwen3VlTextConfig language) {
  const Reader v = r.object("vision_config");
  Qwen3VlFamily f;
  f.vision = read_qwen3_vl_vision(v);
  f.language = std::move(language);
  f.tied = r.boolean("tie_word_embeddings", false);
  if (f.vision.out_hidden != width(f.language))
    v.fail("out_hidden_size", "the merger must end in the language model's hidden_size");
  Vlm m{.type = type};
  m.tokens = tokens::Qwen3Vl{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {512, 512};
  m.family = std::move(f);
  return m;
}

/// model_type "qwen3_vl".
inline Vlm read_qwen3_vl(const Reader& r) {
  return qwen3_vl(r, "qwen3_vl", read_qwen3_vl_text(r.object("text_config")));
}

/// model_type "qwen3_vl_moe".
inline Vlm read_qwen3_vl_moe(const Reader& r) {
  return qwen3_vl(r, "qwen3_vl_moe", read_qwen3_vl_moe_text(r.object("text_config")));
}

}  // namespace vlmest::json::hf
