// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/gemma_vision.hpp>

namespace vlmest {

/// PaliGemma 1 and 2 (transformers models/paligemma): SigLIP, one linear projector, Gemma or Gemma 2; picture and
/// prompt see each other in both directions.
struct PaliGemmaFamily {
  SiglipVision vision;
  GemmaConfig language;
  bool tied = true;
  bool placeholder_outside = false;  ///< image_token_id is not in the vocabulary

  static constexpr AssemblyTraits assembly{};
};

/// PaliGemmaMultiModalProjector.
struct PaliGemmaProjector {
  ScopeId scope = 0;
  Linear linear;
};

inline PaliGemmaProjector make_projector(Context& c, const PaliGemmaFamily& g) {
  return {.scope = c.b.scope(), .linear = make_linear(c, "linear", g.vision.hidden, g.language.hidden, true)};
}
inline Value forward(Context& c, const PaliGemmaProjector& p, const Value& features) {
  InScope in(c.b, p.scope);
  return forward(c, p.linear, features);
}

constexpr FamilyTraits traits(const PaliGemmaFamily&) { return {.features = feature_calls::tensor}; }

using PaliGemmaModel = Assembly<PaliGemmaFamily>;

inline GemmaInputs make_inputs(Context& c, const PaliGemmaFamily& g, const Sequences& s) {
  return make_gemma_inputs(c, g.vision, s);
}

/// Positions of PaliGemma begin with 1.
inline Value paligemma_positions(Context& c, std::int64_t tokens) {
  using namespace eager;
  Value p = arange(c.b, tokens);
  p = add_scalar(p);
  return add_scalar(unsqueeze(p, 0));
}

/// modeling_paligemma.py, PaliGemmaModel.get_image_features.
inline Value image_features(Context& c, const PaliGemmaModel& m, const GemmaInputs& in, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {in.pixels, s.images});
  const Value selected = insert_after_tower(c, tower.last);
  return insert_after_projector(c, forward(c, m.projector, selected), feature_count(s.images));
}

/// modeling_paligemma.py, PaliGemmaForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const PaliGemmaModel& m, const GemmaInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  const PaliGemmaFamily& g = *m.config;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    EmbeddedIds ids = embedded_ids(in.text.ids, g.placeholder_outside);
    Value embeds = embed(c, m.language, ids.ids);
    Value position_ids = paligemma_positions(c, s.seq);
    if (in.pixels) {
      features = batch_features(c, m, in, s);
      ids.placeholders = placeholder_mask(in.text.ids);
      features = to(features, embeds.dtype());
      embeds = masked_scatter(embeds, ids.placeholders, features);
    }
    Value blocks;  // these, too, live until the model returns
    LayerMasks masks;
    if (c.stack().makes_masks) {
      blocks = prefix_blocks(c, in.types);
      masks.full = block_mask(c, mask_shape(cache, s.batch, s.seq), in.text.mask, blocks);
      if (g.language.window)
        masks.sliding = block_mask(c, mask_shape(cache, s.batch, s.seq, g.language.window), in.text.mask, blocks);
    }
    hidden = forward(c, m.language, embeds, position_ids, masks, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache: plainly causal.
inline Value decode(Context& c, const PaliGemmaModel& m, const TextInputs& in, Cache& cache) {
  const PaliGemmaFamily& g = *m.config;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    EmbeddedIds ids = embedded_ids(in.ids, g.placeholder_outside);
    Value embeds = embed(c, m.language, ids.ids);
    const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
    Value position_ids = paligemma_positions(c, tokens);
    const LayerMasks masks = causal_masks(c, g.language, in.mask, batch, tokens, cache);
    hidden = forward(c, m.language, embeds, position_ids, masks, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
