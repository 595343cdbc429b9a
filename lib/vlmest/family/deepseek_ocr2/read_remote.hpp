// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/family/deepseek_ocr2/ocr_family.hpp>
#include <vlmest/family/deepseek_ocr2/read_config.hpp>

/// model_type "deepseek_vl_v2": the config.json of deepseek-ai's checkpoints, whose code comes with them.
/// DeepSeek-OCR's own code is followed as it is. That of DeepSeek-OCR-2 is followed in transformers' own port, as its
/// convert_deepseek_ocr2_weights_to_hf.py makes the port's config of this one.
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

/// sam_vit_b: the keys that both checkpoints have.
inline void read_sam_vit_b(const Reader& sam, SamVision& s) {
  s.hidden = sam.integer("width", s.hidden, 1, 1 << 20);
  s.layers = sam.layers("layers", s.layers);
  s.heads = sam.integer("heads", s.heads, 1, 1 << 16);
  divides(sam, "heads", s.hidden, s.heads);
  s.global_layers = sam.integers("global_attn_indexes", s.global_layers);
  s.mlp = checked_mul(s.hidden, 4);
}

/// convert_config: what the checkpoint's code fixes beside the keys.
inline Vlm read_remote_ocr2(const Reader& r, const Reader& width) {
  DeepseekOcr2Family f;
  const Reader encoder = width.object("qwen2-0-5b");
  read_sam_vit_b(width.object("sam_vit_b"), f.vision.sam);
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
  return deepseek_ocr2_vlm(std::move(f));
}

/// vision_config.width of DeepSeek-OCR. deepencoder.py has these sizes as numbers of its own (build_sam_vit_b,
/// build_clip_l), those of the published file; a file with others stands for a model that is cut to them.
inline DeepEncoder read_deep_encoder(const Reader& width) {
  DeepEncoder d;
  const Reader sam = width.object("sam_vit_b"), clip = width.object("clip-l-14-224");
  read_sam_vit_b(sam, d.sam);
  ClipVision& v = d.clip;
  v.hidden = clip.integer("width", v.hidden, 1, 1 << 20);
  v.layers = clip.layers("layers", v.layers);
  v.heads = clip.integer("heads", v.heads, 1, 1 << 16);
  divides(clip, "heads", v.hidden, v.heads);
  v.intermediate = checked_mul(v.hidden, 4);
  v.patch_size = clip.integer("patch_size", v.patch_size, 1, 1 << 16);
  v.image_size = clip.integer("image_size", v.image_size, v.patch_size, 1 << 20);
  const auto channels = sam.integers("downsample_channels", {d.between, v.hidden});
  if (channels.size() != 2 || channels[0] < 1 || channels[1] != v.hidden)
    sam.fail("downsample_channels", "the second convolution does not end in the width of CLIP's layers",
             "give two numbers, of which the second is clip-l-14-224.width");
  d.between = channels[0];
  return d;
}

/// DeepseekV2Config: what modeling_deepseekv2.py reads beside what DeepSeek-OCR-2's port does. Throws Error for values
/// that DeepSeek-OCR does not have.
inline ExpertListConfig read_expert_list(const Reader& r) {
  ExpertListConfig d{.base = read_deepseek_language(r)};
  const std::int64_t every = r.integer("moe_layer_freq", 1, 1, 1024);
  for (std::size_t i = 0; i < d.base.sparse.size(); ++i)
    d.base.sparse[i] = d.base.sparse[i] && static_cast<std::int64_t>(i) % every == 0;
  d.balances = r.number("aux_loss_alpha", 0.001) > 0;
  const auto only = [&](const char* key, bool holds, const char* known) {
    if (!holds) r.fail(key, "not modelled for DeepSeek-OCR's own code", known);
  };
  only("seq_aux", r.boolean("seq_aux", true), "known: true, a balance for each sequence");
  only("norm_topk_prob", !r.boolean("norm_topk_prob", false), "known: false");
  only("scoring_func", r.string("scoring_func", "softmax") == "softmax", "known: softmax");
  only("ep_size", r.integer("ep_size", 1, 1, 1 << 20) == 1, "known: 1, all experts on one GPU");
  return d;
}

/// DeepSeek-OCR: its classes read the language model's keys at the file's top, where the published file repeats those
/// of language_config.
inline Vlm read_remote_ocr(const Reader& r, const Reader& width) {
  DeepseekOcrFamily f;
  f.vision = read_deep_encoder(width);
  f.language = read_expert_list(r.given("hidden_size") ? r : r.object("language_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  const Reader projector = r.object("projector_config");
  if (projector.string("projector_type", "linear") != "linear")
    projector.fail("projector_type", "DeepSeek-OCR's class has a linear layer", "give linear");
  const auto joins = [&](const char* key, std::int64_t size, const char* hint) {
    if (projector.integer(key, size, 1, 1 << 20) != size) projector.fail(key, "expected " + std::to_string(size), hint);
  };
  joins("input_dim", checked_mul(f.vision.clip.hidden, 2), "CLIP's states and SAM's map side by side");
  joins("n_embed", vlmest::width(f.language), "the language model's hidden_size");
  Vlm m;
  const image_processor::DeepseekOcr rule{.patch_size = f.vision.sam.patch_size};
  m.image_processor = rule;
  m.native = {rule.size, rule.size};
  m.family = std::move(f);
  return m;
}

/// Throws Error for another vision tower: DeepSeek-VL2's is SigLIP's.
inline Vlm read_deepseek_vl_v2(const Reader& r) {
  const Reader vision = r.object("vision_config"), width = vision.object("width");
  const bool sizes = vision.given("width") && vision.value()["width"].is_object();
  const bool first = sizes && width.given("clip-l-14-224"), second = sizes && width.given("qwen2-0-5b");
  if (!first && !second)
    vision.fail("width", "a checkpoint with another vision tower than DeepSeek-OCR's is not modelled",
                "the nearest that are known are DeepSeek-OCR (SAM's tower with clip-l-14-224 behind it) and its second "
                "version (with qwen2-0-5b)");
  vision.without_effect({"image_size", "mlp_ratio", "model_name"});  // deepencoder.py has its own
  Vlm m = first ? read_remote_ocr(r, width) : read_remote_ocr2(r, width);
  m.type = "deepseek_vl_v2";
  return m;
}

}  // namespace vlmest::json::hf
