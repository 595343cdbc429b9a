// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/family/molmo2/tower.hpp>
#include <vlmest/graph/eager/selection.hpp>
#include <vlmest/nn/mlp.hpp>

namespace vlmest {

/// What stands behind the tower (allenai/molmo2 olmo/hf_model/modeling_molmo2.py, Molmo2VisionBackbone): attention of
/// the mean of a window's patches over them, and a gated MLP. Defaults: Molmo2AdapterConfig.
struct Molmo2Adapter {
  Molmo2AttentionConfig attention;
  std::int64_t intermediate = 18944;
  Activation activation = Activation::silu;
  bool masked = false;  ///< pooling_attention_mask: means and attention leave out what is no patch
};

struct Molmo2Backbone {
  ScopeId scope = 0;
  bool masked = false;
  Molmo2Vit vit;
  Molmo2Attention pooling;
  GatedMlp projector;
};

/// In the order of Molmo2VisionBackbone.__init__; `out` is the language model's width.
inline Molmo2Backbone make_backbone(Context& c, const Molmo2Vision& g, const Molmo2Adapter& a, std::int64_t out) {
  Module m(c, "vision_backbone");
  Molmo2Backbone b{.scope = m.scope, .masked = a.masked};
  b.vit = make_molmo_vit(c, g);
  b.pooling = make_molmo_attention(c, "image_pooling_2d", a.attention, Part::projector);
  Module p(c, "image_projector", Part::projector);
  b.projector = {.scope = p.scope, .activation = a.activation};
  b.projector.gate = make_linear(c, "w1", a.attention.width(), a.intermediate, false);
  b.projector.down = make_linear(c, "w2", a.intermediate, out, false);
  b.projector.up = make_linear(c, "w3", a.attention.width(), a.intermediate, false);
  b.projector.activation_scope = c.b.child("act");
  return b;
}

/// The sequence of every place in windows[B, P, n], int64.
inline Value sequence_of_places(Context& c, const Value& windows) {
  using namespace eager;
  const Value batch_idx = view(arange(c.b, windows.size(0)), {windows.size(0), 1, 1});
  return repeat(batch_idx, {1, windows.size(1), windows.size(2)});
}

/// The patches of every window, zeros where it has none: features[B, patches, width] at windows[B, P, n] of these
/// sequences, of which `valid` says what is a patch -> [B P, n, width].
inline Value window_patches(const Value& features, const Value& sequence, const Value& windows, const Value& valid) {
  using namespace eager;
  Value to_pool;
  {
    const Value rows = reshape(features, {windows.size(0), -1, features.size(-1)});
    const Value places = unary("clamp", windows);
    to_pool = take_pairs(rows, sequence, places);
  }
  Value is_patch = to(valid, to_pool.dtype());
  to_pool = mul(to_pool, unsqueeze(std::move(is_patch), 3));
  return reshape(std::move(to_pool), {-1, windows.size(2), features.size(-1)});
}

/// The queries of the pooling: means of a window's patches, [B P, 1, width]; with a mask of those that are there.
inline Value window_means(Context& c, const Value& to_pool, const Value& valid, bool masked, Value& denom) {
  using namespace eager;
  if (!masked) return mean(to_pool, -2, true);
  denom = sum(to(view(valid, {-1, to_pool.size(-2)}), DType::fp32), -1, false);
  {
    Value empty = compare_scalar("eq.Scalar", denom);
    Value one = fill(c.b, "scalar_tensor", Shape{}, DType::fp32);
    denom = where(std::move(empty), std::move(one), denom);
  }
  Value total = sum(to_pool, -2, true);
  Value count = to(unsqueeze(unsqueeze(denom, 1), 2), to_pool.dtype());
  return div(std::move(total), std::move(count));
}

/// Molmo2VisionBackbone.forward of images[B, crops, patches, pixels] and windows[B, P, n]: the features of the windows
/// that hold patches, [features, width].
inline Value forward(Context& c, const Molmo2Backbone& b, const Value& images, const Value& windows,
                     std::int64_t features) {
  using namespace eager;
  InScope in(c.b, b.scope);
  const std::int64_t batch = images.size(0);
  Value encoded;
  {
    const Value crops = view(images, {-1, images.size(2), images.size(3)});
    encoded = encode_images(c, b.vit, crops);
  }
  encoded = view(encoded, {batch, -1, images.size(2), encoded.size(-1)});
  const Value valid = compare_scalar("ge.Scalar", windows);
  const Value valid_token = any_of(valid, -1);
  const Value batch_idx = sequence_of_places(c, windows);
  const Value to_pool = window_patches(encoded, batch_idx, windows, valid);
  Value denom;  // a variable of the function
  const Value query = window_means(c, to_pool, valid, b.masked, denom);
  const Value mask = b.masked ? reshape(valid, {-1, 1, 1, valid.size(-1)}) : Value();
  Value pooled = forward(c, b.pooling, query, to_pool, mask);
  pooled = reshape(pooled, {batch, -1, pooled.size(-1)});
  pooled = forward(c, b.projector, pooled);
  const Value rows = view(pooled, {-1, pooled.size(-1)});
  return masked_index(rows, view(valid_token, {-1}), features);
}

}  // namespace vlmest
