// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/qwen_moe.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>
#include <vlmest/nn/vlm.hpp>

/// What the configs of Qwen3-VL, Qwen3.5, Qwen3-Omni and Compass share.
namespace vlmest::json::hf {

inline void read_qwen3_attention(const Reader& t, LlamaConfig& g) {
  g.qkv_bias = g.o_bias = t.boolean("attention_bias", false);
}

/// mrope_section: three counts, of which transformers uses those of rows and columns.
inline std::vector<std::int64_t> three_sections(const Reader& t, std::vector<std::int64_t> absent) {
  std::vector<std::int64_t> s = mrope_sections(t, std::move(absent));
  if (s.size() < 3) t.fail("mrope_section", "expected three counts: time, rows, columns");
  return s;
}

/// Qwen3VLVisionConfig, Qwen3VLMoeVisionConfig and CohereCompassVisionConfig, which agree.
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

/// A family around Qwen3-VL's tower and processor, of the parts that were read.
template <class Family, class Text>
Vlm around_qwen3_tower(const Reader& r, const char* type, Qwen3VlVision vision, Text language) {
  const Reader v = r.object("vision_config");
  Family f;
  f.vision = std::move(vision);
  f.language = std::move(language);
  f.tied = r.boolean("tie_word_embeddings", false);
  if (f.vision.out_hidden != width(f.language))
    v.fail("out_hidden_size", "the merger must end in the language model's hidden_size");
  Vlm m{.type = type};
  m.image_processor = image_processor::Qwen3Vl{
      .patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {512, 512};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf
