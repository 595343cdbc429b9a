// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/projector/aya_vision.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/tower.hpp>

namespace vlmest {

/// Aya Vision (transformers models/aya_vision): tower, gated projector over joined patches, features scattered into the
/// embeddings of a Cohere decoder.
struct AyaVisionFamily {
  VisionConfig vision;
  AyaVisionProjectorConfig projector;
  DecoderConfig language;
  std::int64_t feature_layer = -1;  ///< hidden state that is used
  bool layer_list = false;          ///< given as a list of one: it is concatenated, which copies it
  bool drop_first = false;          ///< vision_feature_select_strategy "default"
  bool tied = true;
};

struct AyaVisionModel {
  const AyaVisionFamily* config = nullptr;
  ScopeId root = 0, model = 0;
  VisionTower vision;
  AyaVisionProjector projector;
  Decoder language;
  Linear head;
};

inline AyaVisionModel make_model(Context& c, const AyaVisionFamily& g) {
  AyaVisionModel r{.config = &g, .root = c.b.scope()};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_vision(c, g.vision);
    }
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector = make_projector(c, g.projector);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_language(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct AyaVisionInputs {
  TextInputs text;
  Value pixels;  ///< [tiles, channels, side, side]
};

inline AyaVisionInputs make_inputs(Context& c, const AyaVisionFamily& g, const Sequences& s) {
  AyaVisionInputs r;
  if (!s.images.empty()) r.pixels = make_pixels(c, g.vision, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// AyaVisionModel.get_image_features: all hidden states stay alive until the features are projected.
inline Value image_features(Context& c, const AyaVisionModel& m, const Value& pixels, const Sequences& s) {
  using namespace eager;
  const AyaVisionFamily& g = *m.config;
  const TowerOutput tower = forward(c, m.vision, {pixels, s.images, true});
  Value selected = hidden_state(tower, g.feature_layer);
  if (g.drop_first) selected = slice(selected, 1, 1, selected.size(1));
  if (g.layer_list) selected = cat(std::span<Value>(&selected, 1), -1);
  selected = insert_after_tower(c, std::move(selected));
  return insert_after_projector(c, flatten(forward(c, m.projector, selected), 1, 2));
}

/// AyaVisionForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const AyaVisionModel& m, const AyaVisionInputs& in, const Sequences& s, Cache& cache) {
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
inline Value decode(Context& c, const AyaVisionModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
