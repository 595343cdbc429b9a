// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/projector/mlp2.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/tower.hpp>

namespace vlmest {

/// LLaVA-1.5 and what follows its assembly (transformers models/llava): tower, projector, features scattered into the
/// embeddings.
struct LlavaFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = true;                        ///< vision_feature_select_strategy "default"
  bool tied = false;
};

struct LlavaModel {
  const LlavaFamily* config = nullptr;
  ScopeId root = 0, model = 0;
  VisionTower vision;
  Mlp2 projector;
  Decoder language;
  Linear head;
};

inline LlavaModel make_model(Context& c, const LlavaFamily& g) {
  LlavaModel r{.config = &g, .root = c.b.scope()};
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

struct LlavaInputs {
  TextInputs text;
  Value pixels;
  Value image_sizes;  ///< where the tower takes them
};

inline LlavaInputs make_inputs(Context& c, const LlavaFamily& g, const Sequences& s) {
  LlavaInputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, g.vision, s);
    if (takes_image_sizes(g.vision)) r.image_sizes = make_image_sizes(c, s);
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// modeling_llava.py, LlavaModel.get_image_features: all hidden states stay alive until the features are taken out.
inline std::vector<Value> image_features(Context& c, const LlavaModel& m, const LlavaInputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  const LlavaFamily& g = *m.config;
  TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true, inputs.image_sizes});
  auto pick = [&](std::int64_t layer) {
    const Value& h = hidden_state(tower, layer);
    return g.drop_first ? slice(h, 1, 1, h.size(1)) : h;
  };
  Value selected;
  if (!g.layer_list) {
    selected = pick(g.feature_layers.front());
  } else {
    std::vector<Value> pool;
    for (auto l : g.feature_layers) pool.push_back(pick(l));
    selected = cat(pool, -1);
  }
  selected = insert_after_tower(c, std::move(selected));
  const std::int64_t tokens = checked_mul(s.batch, s.image_tokens);
  Value features = insert_after_projector(c, forward(c, m.projector, selected), tokens);
  if (!inputs.image_sizes) return unbind(std::move(features), 0);
  return split_by_image(squeeze(std::move(features), 0), inputs.image_sizes, s.images);
}

/// modeling_llava.py, LlavaForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const LlavaModel& m, const LlavaInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;  // a variable of the function: alive until it returns
    if (in.pixels) {
      std::vector<Value> parts = image_features(c, m, in, s);
      features = cat(parts, 0);
      parts.clear();
      mask = placeholder_mask(c, in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const LlavaModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
