// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/intern_vit.hpp>

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
};

/// InternVLMultiModalProjector.
struct InternVlProjector {
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear first, second;
};

struct InternVlModel {
  const InternVlFamily* config = nullptr;
  ScopeId root = 0, model = 0;
  InternVitTower vision;
  InternVlProjector projector;
  Decoder language;
  Linear head;
};

inline InternVlModel make_model(Context& c, const InternVlFamily& g) {
  InternVlModel r{.config = &g, .root = c.b.scope()};
  const std::int64_t out = width(g.language), in = checked_mul(g.vision.hidden, checked_mul(g.merge, g.merge));
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector.scope = p.scope;
      r.projector.norm = make_layer_norm(c, "layer_norm", in);
      r.projector.first = make_linear(c, "linear_1", in, out, true);
      r.projector.activation_scope = c.b.child("act");
      r.projector.second = make_linear(c, "linear_2", out, out, true);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_language(c, g.language);
  }
  r.head = make_head(c, out, vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct InternVlInputs {
  TextInputs text;
  Value pixels;
};

inline InternVlInputs make_inputs(Context& c, const InternVlFamily& g, const Sequences& s) {
  InternVlInputs r;
  if (!s.images.empty()) r.pixels = make_pixels(c, g.vision, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// modeling_internvl.py, InternVLModel.pixel_shuffle: [N, H, W, C] -> [N, H / merge, W / merge, C * merge^2], two
/// copies.
inline Value pixel_shuffle(Value arg, std::int64_t merge) {
  using namespace eager;
  Value x = std::move(arg);
  const std::int64_t n = x.size(0), rows = x.size(1), cols = x.size(2), channels = x.size(3);
  x = view(x, {n, rows, cols / merge, channels * merge});
  x = contiguous(permute(x, {0, 2, 1, 3}));
  x = view(x, {n, cols / merge, rows / merge, channels * merge * merge});
  x = contiguous(permute(x, {0, 2, 1, 3}));
  return x;
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
inline Value image_features(Context& c, const InternVlModel& m, const Value& pixels, const Sequences& s) {
  using namespace eager;
  const std::int64_t layer = m.config->feature_layer, merge = m.config->merge;
  TowerOutput tower = forward(c, m.vision, {pixels, s.images, layer != -1});
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

/// modeling_internvl.py, InternVLForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const InternVlModel& m, const InternVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;  // a variable of the function: alive until it returns
    if (in.pixels) {
      features = image_features(c, m, in.pixels, s);
      mask = placeholder_mask(c, in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, c.plan.logits));
}

/// One token over the cache.
inline Value decode(Context& c, const InternVlModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
