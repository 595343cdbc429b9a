// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/family/gemma4/family.hpp>
#include <vlmest/nn/vision/gemma4_unified.hpp>

namespace vlmest {

/// Gemma 4 without towers (transformers 5.17 models/gemma4_unified): patches and frames of sound go through a norm and
/// a linear into the language model.
struct Gemma4UnifiedFamily {
  Gemma4UnifiedVision vision;
  Gemma4TextConfig language;
  std::optional<std::int64_t> audio;  ///< audio_embed_dim: samples of a frame
  bool tied = true;
  LogitStep logits = LogitStep::as_is;
};
constexpr FamilyTraits traits(const Gemma4UnifiedFamily& g) {
  return {.features = FeatureCall{gemma4_line},
          .plain_head = g.logits == LogitStep::as_is,
          .no_audio = "sound of Gemma 4 without a tower is not modelled"};
}

struct Gemma4UnifiedModel {
  const Gemma4UnifiedFamily* config = nullptr;
  ScopeId model = 0;
  Gemma4Text language;
  Gemma4UnifiedEmbedder vision;
  Linear head;
};

/// In the order of Gemma4UnifiedModel.__init__ and Gemma4UnifiedForConditionalGeneration.__init__.
inline Gemma4UnifiedModel make_model(Context& c, const Gemma4UnifiedFamily& g) {
  Gemma4UnifiedModel r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    {
      Module v(c, "embed_vision", Part::vision);
      r.vision = make_unified_embedder(c, g.vision, g.language.hidden);
    }
    if (g.audio) {
      Module a(c, "embed_audio");
      make_gemma4_embedder(c, *g.audio, g.language.hidden);
    }
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

inline Gemma4Inputs make_inputs(Context& c, const Gemma4UnifiedFamily& g, const Sequences& s) {
  return make_gemma4_inputs(c, g.vision, s);
}

/// Gemma4UnifiedModel.get_image_features: padding is left out behind the embedder.
inline std::vector<Value> image_features(Context& c, const Gemma4UnifiedModel& m, const Gemma4Inputs& in,
                                         const Sequences& s) {
  using namespace eager;
  const TowerOutput tower = forward(c, m.vision, in.pixels, in.positions);
  const Value real = all_of(compare_scalar("ne.Scalar", in.positions), -1);
  const Value features = masked_index(tower.pooled, real, feature_count(s.images));
  to_host(sum(real, -1, false));
  return split(features, feature_counts(s.images), 0);
}

/// modeling_gemma4_unified.py, Gemma4UnifiedModel.forward: pictures are blocks in both types of layers; without types
/// there are masks of no blocks.
inline LayerMasks layer_masks(Context& c, const Gemma4UnifiedFamily& f, const TextInputs& in, const Value& types,
                              const Cache& cache, Value& blocks) {
  const Gemma4TextConfig& g = f.language;
  const std::int64_t batch = in.ids.size(0), tokens = in.ids.size(1);
  const MaskShape full = mask_shape(cache, batch, tokens), sliding = mask_shape(cache, batch, tokens, g.window);
  if (!g.blocks_of_images) return masks_of_types(c, g, in.mask, full, sliding);
  blocks = eager::fill(c.b, "full", in.ids.shape(), DType::int64);
  if (types) blocks = vision_blocks(c, types);
  LayerMasks r;
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  if (slides < g.layers) r.full = block_mask(c, full, in.mask, blocks);
  if (slides > 0) r.sliding = block_mask(c, sliding, in.mask, blocks);
  return r;
}

/// Gemma4UnifiedForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Gemma4UnifiedModel& m, const Gemma4Inputs& in, const Sequences& s,
                     Cache& cache) {
  CarriedFeatures features;
  const Value hidden = gemma4_hidden(c, m, in.text, in.types, &in, &s, cache, features);
  return head_output(c, m.head, hidden, [&](Value x) { return finish_logits(m.config->logits, std::move(x)); });
}

/// One token over the cache; generate() leaves mm_token_type_ids out after the first step.
inline Value decode(Context& c, const Gemma4UnifiedModel& m, const TextInputs& in, Cache& cache) {
  CarriedFeatures features;
  const Value hidden = gemma4_hidden(c, m, in, {}, nullptr, nullptr, cache, features);
  return finish_logits(m.config->logits, forward(c, m.head, kept_positions(hidden, Logits::last)));
}

}  // namespace vlmest
