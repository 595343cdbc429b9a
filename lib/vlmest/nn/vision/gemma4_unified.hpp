// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projector/gemma4.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// What Gemma 4 has in the place of a tower where it has none (transformers 5.17 models/gemma4_unified,
/// Gemma4UnifiedVisionEmbedder): large patches through norms and one linear, and rows of a table for both axes.
struct Gemma4UnifiedVision {
  std::int64_t patch_size = 16;
  std::int64_t pool = 3;          ///< pooling_kernel_size: small patches of a patch's side
  std::int64_t hidden = 3840;     ///< mm_embed_dim
  std::int64_t positions = 1120;  ///< mm_posemb_size

  std::int64_t patch_width() const {
    const std::int64_t side = checked_mul(patch_size, pool);
    return checked_mul(3, checked_mul(side, side));
  }
};

struct Gemma4UnifiedEmbedder {
  ScopeId scope = 0;
  LayerNorm patch_norm;
  Linear dense;
  LayerNorm dense_norm;
  TensorId positions = none;  ///< [positions, 2, hidden]
  LayerNorm position_norm;
  Gemma4Embedder embedder;
};

/// Rows of pixels for each image, padding included.
inline Shape pixel_shape(const Gemma4UnifiedVision& g, std::span<const ImageLayout> images) {
  return {static_cast<std::int64_t>(images.size()), images.front().tower_tokens, g.patch_width()};
}

/// In the current scope, in the order of Gemma4UnifiedVisionEmbedder.__init__.
inline Gemma4UnifiedEmbedder make_unified_embedder(Context& c, const Gemma4UnifiedVision& g, std::int64_t width) {
  Gemma4UnifiedEmbedder e{.scope = c.b.scope()};
  e.patch_norm = make_layer_norm(c, "patch_ln1", g.patch_width());
  e.dense = make_linear(c, "patch_dense", g.patch_width(), g.hidden, true);
  e.dense_norm = make_layer_norm(c, "patch_ln2", g.hidden);
  e.positions = parameter(c, "pos_embedding", {g.positions, 2, g.hidden});
  e.position_norm = make_layer_norm(c, "pos_norm", g.hidden);
  Module m(c, "multimodal_embedder", Part::projector);
  e.embedder = make_gemma4_embedder(c, g.hidden, width);
  return e;
}

/// Gemma4UnifiedVisionEmbedder.forward: pixels[images, patches, width], position_ids[images, patches, 2], -1 where
/// there is padding -> last_hidden_state and pooler_output.
inline TowerOutput forward(Context& c, const Gemma4UnifiedEmbedder& e, const Value& pixels, const Value& position_ids) {
  using namespace eager;
  InScope in(c.b, e.scope);
  Value x = forward(c, e.patch_norm, pixels);
  x = forward(c, e.dense, x);
  x = forward(c, e.dense_norm, x);
  const Value clamped = pointwise("clamp", DType::int64, position_ids);
  const Value valid = unsqueeze(to(compare_scalar("ne.Scalar", position_ids), c.dtype()), -1);
  const Value axes = arange(c.b, 2);
  Value rows = take_pairs(Value(c.b, e.positions), clamped, axes);
  const Value positions = sum(mul(std::move(rows), valid), -2, false);
  x = add(x, positions);
  x = forward(c, e.position_norm, x);
  TowerOutput out;
  out.pooled = forward(c, e.embedder, x);
  out.last = std::move(x);
  return out;
}

}  // namespace vlmest
