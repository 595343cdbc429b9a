// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/granite4_vision/projector.hpp>
#include <vlmest/nn/family/anyres.hpp>
#include <vlmest/nn/family/causal_lm.hpp>

namespace vlmest {

/// Features of one hidden state of the tower go to one layer of the language model.
struct LayerPair {
  std::int64_t state = 0;  ///< of the tower's hidden states; negative numbers count from the end
  std::int64_t layer = 0;  ///< of the language model; none has it: they are made and not used
};

/// Granite 4 Vision (transformers models/granite4_vision): LLaVA-NeXT's tiles; nothing stands in the place of their
/// tokens until layers of the language model add features of their own.
struct Granite4VisionFamily {
  VisionConfig vision;
  WindowQFormerConfig projector;
  LlamaConfig language;
  std::vector<LayerPair> layer_map;           ///< deepstack_layer_map: a projector each
  std::int64_t spatial_state = -1;            ///< spatial_vision_layer
  std::vector<std::int64_t> spatial_targets;  ///< spatial_target_layers, four at most: one corner of squares each
  bool drop_first = false;                    ///< vision_feature_select_strategy "default"
  bool tied = false;

  static constexpr AssemblyTraits assembly{.projector = nullptr, .newline = "image_newline"};
};

/// get_image_features gives a list for each layer.
inline std::string granite4_vision_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return "from transformers.models.granite4_vision.modeling_granite4_vision import "
         "Granite4VisionImageFeaturesOutput; " +
         wrapped("model.model.get_image_features", "pixel_values, image_sizes",
                 "Granite4VisionImageFeaturesOutput(deepstack_features=[(l[0][0], [y for _, q in l for y in q]) for l "
                 "in zip(*[f(pixel_values=p, image_sizes=s, **k).deepstack_features for p, s in zip(" +
                     split("pixel_values", n) + ", " + split("image_sizes", n) + ")])])");
}
constexpr FamilyTraits traits(const Granite4VisionFamily&) {
  return {.features = FeatureCall{granite4_vision_line}, .plain_head = false};
}

/// The modules behind the language model.
struct Granite4Projectors {
  std::vector<WindowQFormer> layers;   ///< layerwise_projectors
  std::vector<WindowQFormer> spatial;  ///< spatial_projectors
};

/// In the order of Granite4VisionModel.__init__: of the spatial ones there are four whether they have a layer or not.
/// Throws Error for FlashAttention, which the Q-Former's class refuses (modeling_blip_2.py, Blip2QFormerModel,
/// _supports_flash_attn).
inline Granite4Projectors make_behind(Context& c, const Granite4VisionFamily& g) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "the Q-Formers have no FlashAttention path: transformers refuses it",
                "use sdpa or eager");
  Granite4Projectors p;
  const auto make = [&](const char* list, std::size_t i, std::optional<int> corner) {
    InScope in(c.b, c.b.child(list, static_cast<std::int32_t>(i), Part::projector));
    return make_window_qformer(c, g.projector, corner);
  };
  for (std::size_t i = 0; i < g.layer_map.size(); ++i)
    p.layers.push_back(make("layerwise_projectors", i, std::nullopt));
  for (int i = 0; i < 4; ++i) p.spatial.push_back(make("spatial_projectors", static_cast<std::size_t>(i), i));
  return p;
}

using Granite4VisionModel = Assembly<Granite4VisionFamily>;

inline AnyresInputs make_inputs(Context& c, const Granite4VisionFamily& g, const Sequences& s) {
  return make_anyres_inputs(c, g.vision, s);
}

/// What get_image_features returns: layers of the language model with the features of each picture, and the tower's
/// hidden states.
struct Granite4Features {
  std::vector<std::pair<std::int64_t, std::vector<Value>>> layers;
  std::vector<Value> states;
};

/// modeling_granite4_vision.py, Granite4VisionModel.get_image_features.
inline Granite4Features granite_features(Context& c, const Granite4VisionModel& m, const AnyresInputs& in,
                                         const Sequences& s) {
  using namespace eager;
  const Granite4VisionFamily& g = *m.config;
  const std::vector<Value> sizes = unbind(in.sizes, 0);
  std::vector<std::int64_t> tiles, states;
  std::vector<Value> cut;
  for (const Value& size : sizes) to_host(size);
  for (std::size_t i = 0; i < s.images.size(); ++i) {
    tiles.push_back(s.images[i].tiles);
    cut.push_back(slice(select(in.pixels, 0, static_cast<std::int64_t>(i)), 0, 0, tiles[i]));
  }
  const Value pixels = cat(cut, 0);
  for (const LayerPair& l : g.layer_map) states.push_back(l.state);
  states.push_back(g.spatial_state);
  TowerOutput tower = forward(c, m.vision, {pixels, s.images, true, {}, states});
  const auto selected = [&](std::int64_t state) -> Value {
    const Value& h = hidden_state(tower, state);
    return g.drop_first ? slice(h, 1, 1, h.size(1)) : h;
  };
  Granite4Features r;
  Value lengths;  // of what was packed last: a variable of the function
  const auto pack = [&](std::int64_t layer, const std::vector<Value>& features) {
    std::vector<Value> packed;
    for (std::size_t i = 0; i < s.images.size(); ++i)
      packed.push_back(pack_features(Value(c.b, m.newline), features[i], sizes[i], s.images[i]));
    lengths = from_host(c.b, {static_cast<std::int64_t>(packed.size())}, DType::int64);
    r.layers.emplace_back(layer, std::move(packed));
  };
  std::vector<Value> projected, group;  // variables: the last ones stay to the end
  for (std::size_t i = 0; i < g.layer_map.size(); ++i) {
    Value features = forward(c, g.projector, m.behind.layers[i], selected(g.layer_map[i].state));
    projected = split(std::move(features), tiles, 0);
    pack(g.layer_map[i].layer, projected);
  }
  const Value spatial = selected(g.spatial_state);
  for (std::size_t i = 0; i < g.spatial_targets.size(); ++i) {
    Value features = forward(c, g.projector, m.behind.spatial[i], spatial);
    group = split(std::move(features), tiles, 0);
    pack(g.spatial_targets[i], group);
  }
  r.states = std::move(tower.hidden_states);
  return r;
}

/// The same of the batch, or in chunks, of which the lists of each layer are joined and the hidden states dropped.
inline Granite4Features granite_batch(Context& c, const Granite4VisionModel& m, const AnyresInputs& in,
                                      const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun one(c, 0, 1);
    return granite_features(c, m, in, s);
  }
  Granite4Features all;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size());
    Granite4Features part = granite_features(c, m, chunks[i].inputs, chunks[i].sequences);
    if (i == 0) {
      all.layers = std::move(part.layers);
      continue;
    }
    for (std::size_t l = 0; l < all.layers.size(); ++l)
      std::move(part.layers[l].second.begin(), part.layers[l].second.end(), std::back_inserter(all.layers[l].second));
  }
  return all;
}

/// What the language model's layers add to their inputs: features[rows, hidden] of layer i, and where they go.
struct LayerFeatures {
  Value mask;                   ///< bool[B, S, 1]
  std::vector<Value> features;  ///< one for each layer; empty: nothing
};

/// modeling_granite4_vision.py, Granite4VisionTextModel.forward, ahead of a layer.
inline Value add_features(const Value& x, const Value& mask, const Value& features) {
  using namespace eager;
  Value sum;
  {
    const Value selected = masked_index(x, select(mask, -1, 0), features.size(0));
    sum = add(selected, features);
  }
  return masked_scatter(x, mask, view(std::move(sum), {-1}));
}

/// Granite4VisionTextModel.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const LlamaDecoder& d, Value arg, const Value& attention_mask,
                     const LayerFeatures& visual, Cache& cache) {
  const LlamaConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  embeds = eager::mul_scalar(embeds);
  const std::int64_t tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, embeds.size(0), tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    if (i < visual.features.size() && visual.features[i]) x = add_features(x, visual.mask, visual.features[i]);
    const LlamaLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

/// modeling_granite4_vision.py, Granite4VisionModel.forward: rows of each layer, of which a later list replaces an
/// earlier one, and embeddings without those of placeholders.
inline LayerFeatures place_features(const Granite4Features& images, std::int64_t layers, const Value& ids,
                                    Value& embeds) {
  using namespace eager;
  LayerFeatures r;
  r.features.resize(static_cast<std::size_t>(layers));
  std::vector<Value> unused(images.layers.size());  // features of layers that there are none of
  Value rows;
  for (std::size_t i = 0; i < images.layers.size(); ++i) {
    std::vector<Value> pictures = images.layers[i].second;
    rows = to(cat(pictures, 0), embeds.dtype());
    pictures.clear();
    if (i == 0) {
      r.mask = placeholder_mask(ids);
      embeds = masked_fill(embeds, r.mask);
    }
    const std::int64_t layer = images.layers[i].first;
    (layer >= 0 && layer < layers ? r.features[static_cast<std::size_t>(layer)] : unused[i]) = rows;
  }
  for (Value& u : unused)
    if (u) r.features.push_back(std::move(u));
  return r;
}

/// modeling_granite4_vision.py, Granite4VisionForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Granite4VisionModel& m, const AnyresInputs& in, const Sequences& s,
                     Cache& cache) {
  if (c.labels && loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out what this model does to its logits",
                "give plan.loss=unfused or fused");
  Value hidden;
  Granite4Features images;  // the output carries the lists of its layers
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    LayerFeatures visual;
    if (in.pixels) {
      images = granite_batch(c, m, in, s);
      visual = place_features(images, m.config->language.layers, in.text.ids, embeds);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, visual, cache);
    images.states.clear();
  }
  return head_output(c, m.head, hidden,
                     [](Value logits) { return finish_logits(LogitStep::divide, std::move(logits)); });
}

/// One token over the cache.
inline Value decode(Context& c, const Granite4VisionModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, LayerFeatures{}, cache);
  }
  return finish_logits(LogitStep::divide, forward(c, m.head, kept_positions(hidden, Logits::last)));
}

}  // namespace vlmest
