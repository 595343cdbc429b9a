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

/// model_type "internvl": transformers 5.17, models/internvl/configuration_internvl.py. Without a vision_config the
/// tower is InternViT-300M's shape, without a text_config the language model is Qwen2.
inline Vlm read_internvl(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  InternVlFamily f;
  f.vision = read_intern_vit_config(v);
  f.language = read_decoder(t, t.string("model_type", "qwen2"));
  f.merge = read_merge(r, "downsample_ratio", 0.5);
  f.activation = parse_activation(r.string("projector_hidden_act", "gelu"));
  f.feature_layer = r.integer("vision_feature_layer", -1, -(f.vision.layers + 1), f.vision.layers);
  if (r.string("vision_feature_select_strategy", "default") != "default")
    r.fail("vision_feature_select_strategy", "expected \"default\"",
           "the class token must go: the features form a square");
  f.tied = r.boolean("tie_word_embeddings", true);
  check_merge(r, f);
  Vlm m{.type = "internvl"};
  m.tokens = tokens::InternVl{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.merge};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
