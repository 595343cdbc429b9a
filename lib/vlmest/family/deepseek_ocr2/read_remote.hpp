// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/family/deepseek_ocr2/read_config.hpp>

/// model_type "deepseek_vl_v2": the config.json of deepseek-ai's checkpoints, whose code comes with them. That of
/// DeepSeek-OCR-2 is followed in transformers' own port, as its convert_deepseek_ocr2_weights_to_hf.py makes the port's
/// config of this one.
namespace vlmest::json::hf {

/// language_config: DeepSeek-V2's keys. Throws Error for latent attention.
inline DeepseekMoeConfig read_deepseek_language(const Reader& r) {
  if (r.boolean("use_mla", true))
    r.fail("use_mla", "latent attention of this type is not modelled", "known: use_mla false, as DeepSeek-OCR has it");
  DeepseekMoeConfig d = read_deepseek_experts(r);
  const std::int64_t dense = r.integer("first_k_dense_replace", 0, 0, 1024);
  for (std::int64_t i = 0; i < d.layers.layers; ++i) d.sparse.push_back(i >= dense);
  return d;
}

/// convert_config: what the checkpoint's code fixes beside the keys.
inline Vlm read_deepseek_vl_v2(const Reader& r) {
  const Reader vision = r.object("vision_config"), width = vision.object("width");
  if (!vision.given("width") || !vision.value()["width"].is_object() || !width.given("qwen2-0-5b"))
    vision.fail("width", "a checkpoint with another vision tower than DeepSeek-OCR-2's is not modelled",
                "the nearest that is known is deepseek_ocr2 (SAM's tower with qwen2-0-5b behind it)");
  DeepseekOcr2Family f;
  const Reader sam = width.object("sam_vit_b"), encoder = width.object("qwen2-0-5b");
  SamVision& s = f.vision.sam;
  s.hidden = sam.integer("width", s.hidden, 1, 1 << 20);
  s.layers = sam.layers("layers", s.layers);
  s.heads = sam.integer("heads", s.heads, 1, 1 << 16);
  divides(sam, "heads", s.hidden, s.heads);
  s.global_layers = sam.integers("global_attn_indexes", s.global_layers);
  s.mlp = checked_mul(s.hidden, 4);
  LlamaConfig& e = f.vision.encoder;
  e.hidden = encoder.integer("dim", 896, 1, 1 << 20);
  e.intermediate = 4864;
  e.layers = 24;
  e.heads = 14;
  e.kv_heads = 2;
  if (e.hidden != f.vision.features || e.hidden % (2 * e.heads) != 0)
    encoder.fail("dim", std::to_string(e.hidden) + ", but the convolutions behind SAM's tower end in 896 channels",
                 "give 896");
  e.head_dim = e.hidden / e.heads;
  f.language = read_deepseek_language(r.object("language_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m = deepseek_ocr2_vlm(std::move(f));
  m.type = "deepseek_vl_v2";
  return m;
}

}  // namespace vlmest::json::hf
