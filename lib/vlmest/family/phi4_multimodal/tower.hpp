// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/vision/idefics3.hpp>
#include <vlmest/nn/vision/siglip.hpp>

namespace vlmest {

/// The tower of Phi-4-multimodal (transformers 5.17 modeling_phi4_multimodal.py, Phi4MultimodalVisionModel): SigLIP's
/// layers and pooling head, Idefics3's positions and mask. Its head runs though nothing reads what it gives.
struct Phi4Vision {
  Idefics3Vision patches{.intermediate = 4304, .layers = 27, .image_size = 448, .patch_size = 14};
  std::int64_t feature_layer = -2;  ///< the hidden state that is read
};

struct Phi4Tower {
  const Phi4Vision* config = nullptr;
  Idefics3Tower body;
  SiglipHead head;
};

/// Phi4MultimodalVisionModel.__init__, in the current scope.
inline Phi4Tower make_tower(Context& c, const Phi4Vision& v) {
  const Idefics3Vision& g = v.patches;
  Phi4Tower t{.config = &v, .body = {.config = &g, .scope = c.b.scope()}};
  const std::int64_t side = g.image_size / g.patch_size;
  {
    Module e(c, "embeddings");
    t.body.embeddings_scope = e.scope;
    t.body.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.body.positions = make_embedding(c, "position_embedding", checked_mul(side, side), g.hidden);
  }
  {
    Module e(c, "encoder");
    t.body.layers = make_layers(g.layers, [&](std::int32_t i) {
      ClipLayer l = make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
      l.causal = true;
      return l;
    });
  }
  t.body.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  t.head = make_siglip_head(c, g);
  return t;
}

/// Phi4MultimodalVisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, patches, hidden].
inline Value phi4_embeddings(Context& c, const Idefics3Tower& t, const Value& pixels, const Value& seen,
                             std::int64_t real) {
  InScope in(c.b, t.embeddings_scope);
  const Value features = patch_sequence(input_embedding(c, forward(c, t.patches, pixels)));
  const PatchPositions places = patch_positions(c, *t.config, seen, real);
  Value positions = forward(c, t.positions, places.ids);
  return eager::add(features, std::move(positions));
}

/// Phi4MultimodalVisionModel.forward: pixels[N, 3, H, W], seen bool[N, h, w], of which `real` patches are true.
inline TowerOutput forward(Context& c, const Phi4Tower& t, const TowerInput& input, const Value& seen,
                           std::int64_t real) {
  using namespace eager;
  const Idefics3Vision& g = t.config->patches;
  InScope in(c.b, t.body.scope);
  const bool padded = real < numel(seen.shape()).value();
  if (padded) refuse_unpadded_patches(c);
  TowerOutput out;
  const Value embedded = phi4_embeddings(c, t.body, input.pixels, seen, real);
  const Value flat = view(seen, {seen.size(0), -1});
  Value mask;
  if (c.stack().makes_masks) mask = bidirectional_mask(c, flat, padded);
  const Value encoded = run_layers(c, t.body.layers, embedded, 0, input, out, [&](const ClipLayer& l, const Value& h) {
    return forward(c, l, h, g.heads, mask, g.attention_dropout);
  });
  out.last = forward(c, t.body.post_norm, encoded);
  out.pooled = pool(c, t.head, g.heads, out.last, [&](const Value&) {
    return c.stack().makes_masks ? pointwise("bitwise_not", DType::boolean, flat) : Value();
  });
  return out;
}

}  // namespace vlmest
