// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vision/tower.hpp>

/// Vision towers out of a Hugging Face config, with the defaults of each model_type's config class.
namespace vlmest::json::hf {

/// The model_type that a part of the config names, where it names one.
inline void check_part(const Reader& r, const char* type) {
  if (const std::string given = r.string("model_type", type); given != type)
    r.fail("model_type", "'" + given + "' is not supported here", "known: " + std::string(type));
}

inline void divides(const Reader& r, const char* key, std::int64_t whole, std::int64_t part) {
  if (whole % part != 0)
    r.fail(key, std::to_string(whole) + " is not divisible by " + std::to_string(part),
           "check hidden_size and the number of heads");
}

/// vision_feature_layer names one of the hidden states: the input and the result of each layer.
inline void check_feature_layer(const Reader& r, std::int64_t layer, std::int64_t layers,
                                const char* key = "vision_feature_layer") {
  if (layer > layers || layer < -(layers + 1)) r.fail(key, "the tower has " + std::to_string(layers) + " layers");
}

/// downsample_ratio or pixel_shuffle_ratio as the side of the squares that are folded; it must be one over a whole
/// number, as int(1 / ratio) and the ratio itself both size the projector.
inline std::int64_t read_merge(const Reader& r, const char* key, double absent) {
  const double ratio = r.number(key, absent);
  const double merge = ratio > 0 ? std::round(1 / ratio) : 0;
  if (!(merge >= 1 && merge <= 1024) || std::abs(merge * ratio - 1) > 1e-9)
    r.fail(key, "must be one over a whole number", "0.5 folds squares of 2 x 2 features");
  return static_cast<std::int64_t>(merge);
}

/// Sizes, heads and activation, which all towers of ViT shape name alike; `d` holds the class's defaults.
template <class Vision>
Vision vit(const Reader& r, Vision d, std::string_view activation) {
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.image_size = r.side("image_size", d.image_size);
  d.patch_size = r.side("patch_size", d.patch_size);
  d.channels = r.integer("num_channels", d.channels, 1, 1 << 10);
  d.activation = parse_activation(r.string("hidden_act", activation));
  divides(r, "num_attention_heads", d.hidden, d.heads);
  if (d.patch_size > d.image_size) r.fail("patch_size", "larger than the image");
  return d;
}

/// models/clip/configuration_clip.py, CLIPVisionConfig. The tower alone has no projection, and no words.
inline VisionConfig read_clip(const Reader& r) {
  r.without_effect({"projection_dim", "vocab_size"});
  return vit(r, ClipVision{}, "quick_gelu");
}

/// models/siglip/configuration_siglip.py, SiglipVisionConfig; an absent vision_use_head means a head, null
/// none. PaliGemma's files count the tower's tokens, and say how wide its projector is, here and at their top.
inline SiglipVision siglip_part(const Reader& r) {
  r.without_effect({"num_image_tokens", "num_positions", "projection_dim", "projector_hidden_act"});
  SiglipVision d = vit(r, SiglipVision{}, "gelu_pytorch_tanh");
  d.head = !r.is_null("vision_use_head") && r.boolean("vision_use_head", true);
  return d;
}
inline VisionConfig read_siglip(const Reader& r) { return siglip_part(r); }
/// A tower that must be SigLIP's.
inline SiglipVision siglip_vision(const Reader& r) {
  if (const std::string type = r.string("model_type", "siglip_vision_model"); type != "siglip_vision_model")
    r.fail("model_type", "the vision tower '" + type.substr(0, 64) + "' of this type is not modelled",
           "known: siglip_vision_model");
  return siglip_part(r);
}

/// models/pixtral/configuration_pixtral.py, PixtralVisionConfig: head_dim is always hidden_size / heads.
inline PixtralVision pixtral_vision(const Reader& r) {
  PixtralVision d = vit(r, PixtralVision{}, "gelu");
  r.without_effect({"head_dim"});
  const std::int64_t head_dim = d.hidden / d.heads;
  if (head_dim % 2 != 0 || head_dim < 4)
    r.fail("num_attention_heads", "heads of " + std::to_string(head_dim) + " channels cannot turn by row and column",
           "hidden_size / num_attention_heads must be even and at least 4");
  return d;
}
inline VisionConfig read_pixtral(const Reader& r) { return pixtral_vision(r); }

}  // namespace vlmest::json::hf
