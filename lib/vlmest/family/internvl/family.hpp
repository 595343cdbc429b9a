// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/pixel_shuffle.hpp>

namespace vlmest {

/// InternVL 2.5, 3 and 3.5 (transformers models/internvl): InternViT over square tiles, squares of neighbouring
/// features folded into channels, a normed two-layer projector, features scattered into the embeddings.
struct InternVlFamily {
  InternVitVision vision;
  DecoderConfig language;
  std::int64_t merge = 2;  ///< 1 / downsample_ratio
  Activation activation = Activation::gelu;
  std::int64_t feature_layer = -1;  ///< -1: the tower's last hidden state, else one of its hidden_states
  bool tied = true;
  bool videos = false;          ///< model_type "internvl" around a language model with Qwen's tokenizer
  bool unknown_labels = false;  ///< the same around another one

  static constexpr AssemblyTraits assembly{};
};

constexpr FamilyTraits traits(const InternVlFamily& g) {
  return {.features = feature_calls::tile_tensor,
          .videos = g.videos ? VideoPixels::tiles : VideoPixels::refused,
          .no_videos = g.unknown_labels
                           ? "the lines ahead of its frames are counted in tokens of Qwen's tokenizers, which this "
                             "language model has not"
                           : std::string_view()};
}

/// InternVLMultiModalProjector.
struct InternVlProjector {
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear first, second;
};

inline InternVlProjector make_projector(Context& c, const InternVlFamily& g) {
  const std::int64_t out = width(g.language), in = checked_mul(g.vision.hidden, checked_mul(g.merge, g.merge));
  InternVlProjector p{.scope = c.b.scope()};
  p.norm = make_layer_norm(c, "layer_norm", in);
  p.first = make_linear(c, "linear_1", in, out, true);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", out, out, true);
  return p;
}

using InternVlModel = Assembly<InternVlFamily>;

inline PixelInputs make_inputs(Context& c, const InternVlFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_internvl.py, InternVLMultiModalProjector.forward.
inline Value forward(Context& c, const InternVlModel& m, const InternVlProjector& p, Value arg) {
  Value features = std::move(arg);
  InScope in(c.b, p.scope);
  Value x = forward(c, p.norm, features);
  x = forward(c, p.first, x);
  {
    InScope a(c.b, p.activation_scope);
    x = activate(c, m.config->activation, x);
  }
  x = forward(c, p.second, x);
  return x;
}

/// modeling_internvl.py, InternVLModel.get_image_features: [tiles, patches / merge^2, language width].
inline Value image_features(Context& c, const InternVlModel& m, const PixelInputs& inputs, const Sequences& s) {
  using namespace eager;
  const std::int64_t layer = m.config->feature_layer, merge = m.config->merge;
  TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, layer != -1});
  Value x = layer == -1 ? tower.last : hidden_state(tower, layer);
  x = slice(x, 1, 1, x.size(1));
  x = insert_after_tower(c, std::move(x));
  const std::int64_t tiles = x.size(0), side = m.config->vision.image_size / m.config->vision.patch_size;
  x = view(x, {tiles, side, side, -1});
  x = pixel_shuffle(x, merge);
  x = view(x, {tiles, -1, x.size(3)});
  x = forward(c, m, m.projector, x);
  return insert_after_projector(c, std::move(x));
}

}  // namespace vlmest
