// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/intern_vit.hpp>
#include <vlmest/nn/family/internvl.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// downsample_ratio as the side of the squares that are folded; it must be one over a whole number, as int(1 / ratio)
/// and the ratio itself both size the projector.
inline std::int64_t read_merge(const Reader& r, const char* key, double absent) {
  const double ratio = r.number(key, absent);
  const double merge = ratio > 0 ? std::round(1 / ratio) : 0;
  if (!(merge >= 1 && merge <= 1024) || std::abs(merge * ratio - 1) > 1e-9)
    r.fail(key, "must be one over a whole number", "0.5 folds squares of 2 x 2 features");
  return static_cast<std::int64_t>(merge);
}

/// Throws Error where squares of `merge` patches do not fill a tile.
inline void check_merge(const Reader& r, const InternVlFamily& f) {
  if (f.vision.image_size / f.vision.patch_size % f.merge != 0)
    r.fail("downsample_ratio",
           std::to_string(f.vision.image_size / f.vision.patch_size) + " patches a side cannot be folded by " +
               std::to_string(f.merge),
           "choose image_size / patch_size as a multiple of 1 / downsample_ratio");
}

/// What the configs of the architecture share beside the tower; `text` is what a text_config without model_type means.
inline Vlm internvl_model(const Reader& r, std::string_view type, InternVitVision tower, std::string_view text,
                          bool tied) {
  const Reader t = r.object("text_config");
  InternVlFamily f;
  f.vision = std::move(tower);
  f.language = read_decoder(t, t.string("model_type", text));
  f.merge = read_merge(r, "downsample_ratio", 0.5);
  f.activation = parse_activation(r.string("projector_hidden_act", "gelu"));
  f.feature_layer = r.integer("vision_feature_layer", -1, -(f.vision.layers + 1), f.vision.layers);
  if (r.string("vision_feature_select_strategy", "default") != "default")
    r.fail("vision_feature_select_strategy", "expected \"default\"",
           "the class token must go: the features form a square");
  f.tied = r.boolean("tie_word_embeddings", tied);
  check_merge(r, f);
  Vlm m{.type = std::string(type)};
  m.tokens = tokens::InternVl{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.merge};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

/// model_type "internvl": transformers 5.17, models/internvl/configuration_internvl.py. Without a vision_config the
/// tower is InternViT-300M's shape, without a text_config the language model is Qwen2.
inline Vlm read_internvl(const Reader& r) {
  return internvl_model(r, "internvl", read_intern_vit_config(r.object("vision_config")), "qwen2", true);
}

/// model_type "qianfan_ocr": transformers 5.17, models/qianfan_ocr/configuration_qianfan_ocr.py.
inline Vlm read_qianfan_ocr(const Reader& r) {
  const Reader v = r.object("vision_config");
  for (const char* key : {"hidden_dropout_prob", "projection_dropout", "attention_dropout"})
    if (read_dropout(v, key, 0.0)) v.fail(key, "dropout in this tower is not modelled", "leave it at 0");
  InternVitVision tower = read_intern_vit_config(v, {.qkv_bias = true});
  tower.encoder = false;
  tower.drop_path = read_dropout(v, "drop_path_rate", 0.1);
  return internvl_model(r, "qianfan_ocr", std::move(tower), "qwen3", false);
}

}  // namespace vlmest::json::hf
