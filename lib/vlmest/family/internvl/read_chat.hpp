// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/internvl/family.hpp>
#include <vlmest/family/internvl/h2ovl_rule.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/intern_vit.hpp>
#include <vlmest/nn/vlm.hpp>

/// model_type "internvl_chat": the config.json of OpenGVLab's InternVL 1.5, 2, 2.5, 3 and 3.5 checkpoints, whose code
/// comes with them (configuration_intern_vit.py, configuration_internvl_chat.py, modeling_internvl_chat.py of
/// OpenGVLab/InternVL3-8B). What runs is followed in transformers' own port of the same architecture, models/internvl:
/// its modules and names, q, k and v as three products where the checkpoints' code has one of the same weights.
namespace vlmest::json::hf {

/// Throws Error where squares of `merge` patches do not fill a tile.
inline void check_merge(const Reader& r, const InternVlFamily& f) {
  if (f.vision.image_size / f.vision.patch_size % f.merge != 0)
    r.fail("downsample_ratio",
           std::to_string(f.vision.image_size / f.vision.patch_size) + " patches a side cannot be folded by " +
               std::to_string(f.merge),
           "choose image_size / patch_size as a multiple of 1 / downsample_ratio");
}

/// InternVisionConfig; there is neither a mask token nor a norm behind the last layer (modeling_intern_vit.py).
inline InternVitVision read_intern_vision(const Reader& r) {
  InternVitVision d =
      vit(r,
          InternVitVision{
              .hidden = 3200, .intermediate = 12800, .layers = 48, .heads = 25, .image_size = 224, .patch_size = 14},
          "gelu");
  d.qkv_bias = r.boolean("qkv_bias", false);
  d.qk_norm = r.boolean("qk_normalization", true);
  const std::string norm = r.string("norm_type", "rms_norm");
  if (norm != "layer_norm" && norm != "rms_norm") r.fail("norm_type", "expected \"layer_norm\" or \"rms_norm\"");
  d.rms_norm = norm == "rms_norm";
  if (r.boolean("use_moe", false)) r.fail("use_moe", "a tower of experts is not modelled", "set it to false");
  r.without_effect({"capacity_factor", "eval_capacity_factor", "laux_allreduce", "moe_coeff_ratio",
                    "moe_intermediate_size", "moe_output_scale", "noisy_gate_policy", "num_experts",
                    "num_routed_experts", "num_shared_experts", "shared_expert_intermediate_size", "use_residual",
                    "use_rts", "use_weighted_residual", "use_flash_attn"});
  return d;
}

/// The language model of llm_config: its model_type, and its own key for tied embeddings.
inline void read_llm(const Reader& t, InternVlFamily& f) {
  const std::string type = t.string("model_type", "");
  if (type.empty()) t.fail("model_type", "missing", "the llm_config of a checkpoint names its type");
  f.language = read_decoder(t, type);
  f.tied = t.boolean("tie_word_embeddings", false);
}

/// conversation.py and dynamic_preprocess() in the checkpoints' README: tiles as config.json sets them, a thumbnail
/// behind more than one.
inline image_processor::InternVl read_dynamic_tiles(const Reader& r, const InternVlFamily& f) {
  image_processor::InternVl rule{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.merge};
  rule.min_tiles = r.integer("min_dynamic_patch", 1, 1, image_processor::max_tile_count);
  rule.max_tiles = r.integer("max_dynamic_patch", 6, 1, image_processor::max_tile_count);
  if (rule.min_tiles > rule.max_tiles) r.fail("min_dynamic_patch", "larger than max_dynamic_patch", "exchange them");
  rule.thumbnail = r.boolean("use_thumbnail", false);
  if (!r.boolean("dynamic_image_size", false)) rule.tiling = image_processor::Tiling::never;
  return rule;
}

/// What the checkpoints' configs share; the image processor's rule stays open. Throws Error for ps_version "v1", whose
/// features lie in another order after one copy less (InternVL-Chat-V1-1 and V1-2), and for a force_image_size that is
/// not the tower's.
inline InternVlFamily read_chat_model(const Reader& r) {
  InternVlFamily f;
  r.without_effect({"system_message", "template", "pad2square"});  // texts, and the values of pixels
  for (const char* key : {"use_backbone_lora", "use_llm_lora"})
    if (r.integer(key, 0, 0, 1 << 16) != 0)
      r.fail(key, "adapters within the checkpoint are not modelled", "merge them, and set it to 0");
  f.vision = read_intern_vision(r.object("vision_config"));
  read_llm(r.object("llm_config"), f);
  f.merge = read_merge(r, "downsample_ratio", 0.5);
  check_merge(r, f);
  if (const std::string version = r.string("ps_version", "v1"); version != "v2")
    r.fail("ps_version", "'" + version + "' is not supported", "known: v2, which InternVL 1.5 and later have");
  if (const auto side = r.side("force_image_size", f.vision.image_size); side != f.vision.image_size)
    r.fail("force_image_size",
           std::to_string(side) + ", but the tower has positions for images of " + std::to_string(f.vision.image_size),
           "set vision_config.image_size to the same");
  f.feature_layer = r.integer("select_layer", -1, -(f.vision.layers + 1), f.vision.layers);
  return f;
}

inline Vlm chat_vlm(const char* type, ImageProcessor rule, InternVlFamily f) {
  Vlm m{.type = type};
  m.image_processor = std::move(rule);
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

inline Vlm read_internvl_chat(const Reader& r) {
  InternVlFamily f = read_chat_model(r);
  ImageProcessor rule = read_dynamic_tiles(r, f);
  return chat_vlm("internvl_chat", std::move(rule), std::move(f));
}

/// model_type "h2ovl_chat": configuration_h2ovl_chat.py of h2oai/h2ovl-mississippi-2b, InternVL's keys and use_msac;
/// the language model is Danube, a Mistral.
inline Vlm read_h2ovl_chat(const Reader& r) {
  InternVlFamily f = read_chat_model(r);
  ImageProcessor rule = image_processor::H2ovl{.tiles = read_dynamic_tiles(r, f), .msac = r.boolean("use_msac", false)};
  return chat_vlm("h2ovl_chat", std::move(rule), std::move(f));
}

}  // namespace vlmest::json::hf
