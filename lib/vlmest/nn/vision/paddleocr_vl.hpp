// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/vision/packed_siglip.hpp>
#include <vlmest/nn/vision/position_interpolation.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// PaddleOCR-VL's vision transformer (transformers models/paddleocr_vl, PaddleOCRVisionModel): SigLIP over the packed
/// patches of pictures in their own sizes, a table of positions resampled to each, queries and keys turned by row and
/// column. Defaults: PaddleOCRVisionConfig.
struct PaddleOcrVision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;
  std::int64_t heads = 16;
  std::int64_t image_size = 384;  ///< side of the table of positions, in pixels
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t merge = 2;  ///< spatial_merge_size, of the projector
  Activation activation = Activation::gelu_tanh;
};

struct PaddleOcrTower {
  const PaddleOcrVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0, encoder_scope = 0;
  PatchConv patches;
  Embedding positions;
  std::vector<ClipLayer> layers;
  AxialRope rope;
  LayerNorm post_norm;
};

/// In the order of PaddleOCRVisionTransformer.__init__.
inline PaddleOcrTower make_tower(Context& c, const PaddleOcrVision& g) {
  Module inner(c, "vision_model");
  PaddleOcrTower t{.config = &g, .scope = inner.scope};
  {
    const std::int64_t side = g.image_size / g.patch_size, places = checked_mul(side, side);
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", places, g.hidden);
    buffer(c, "position_ids", {1, places}, DType::int64);
  }
  {
    Module e(c, "encoder");
    t.encoder_scope = e.scope;
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
    });
    t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_paddleocr_vl.py, PaddleOCRVisionEmbeddings.forward: pixels[patches, channels, side, side] -> [patches,
/// hidden].
inline Value paddleocr_embeddings(Context& c, const PaddleOcrTower& t, const PackedImages& input,
                                  std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  Value x = view(input_embedding(c, forward(c, t.patches, input.pixels)), {input.pixels.size(0), t.config->hidden});
  const Interpolation at = interpolate_positions(c, input.grid, images);
  Value entries = forward(c, t.positions, at.indices);
  const Value learned = sum(mul(std::move(entries), unsqueeze(at.weights, 2)), 1, false);
  Value narrow = to(learned, x.dtype());
  return add(std::move(x), std::move(narrow));
}

/// modeling_paddleocr_vl.py, PaddleOCRVisionTransformer.forward -> last_hidden_state[patches, hidden].
inline Value forward(Context& c, const PaddleOcrTower& t, const PackedImages& input,
                     std::span<const ImageLayout> images) {
  const PaddleOcrVision& g = *t.config;
  InScope in(c.b, t.scope);
  const Value embeddings = paddleocr_embeddings(c, t, input, images);  // a variable of the function: alive to its end
  Value last;
  {
    InScope encoder(c.b, t.encoder_scope);
    Value hidden = embeddings;
    const Value position_ids = vision_position_ids(c, input.grid, images, 1);
    const Segments segments = image_segments(c, input.grid, images);
    const CosSin positions = forward(c, t.rope, position_ids);
    PackedSiglipStack stack(c);
    for (const ClipLayer& l : t.layers)
      hidden = stack(l, hidden, {.heads = g.heads, .segments = &segments, .positions = &positions});
    last = hidden;
  }
  return forward(c, t.post_norm, last);
}

}  // namespace vlmest
