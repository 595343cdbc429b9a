// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/family/gemma_vision.hpp>
#include <vlmest/nn/projector/gemma3.hpp>

namespace vlmest {

/// Gemma 3 (transformers models/gemma3): SigLIP, pooled features, a decoder of sliding and full layers; the tokens of a
/// picture see each other in both directions. ShieldGemma 2 (models/shieldgemma2, ShieldGemma2ForImageClassification)
/// is the whole of it below `model`, of whose logits two are kept.
struct Gemma3Family {
  SiglipVision vision;
  Gemma3Projector projector;
  GemmaConfig language;
  bool tied = true;
  bool placeholder_outside = false;  ///< image_token_id is not in the vocabulary
  bool classifier = false;           ///< ShieldGemma 2

  static constexpr AssemblyTraits assembly{};
};

/// ShieldGemma 2's model has the model with get_image_features below it.
inline std::string shield_line(const std::string& type, std::int64_t n) {
  std::string line = feature_calls::tensor.line(type, n);
  const std::string method = "model.model.get_image_features";
  for (std::size_t at = 0; (at = line.find(method, at)) != std::string::npos; at += method.size() + 6)
    line.insert(at, "model.");
  return line;
}
constexpr FamilyTraits traits(const Gemma3Family& g) {
  if (!g.classifier) return {.features = feature_calls::tensor};
  return {.features = FeatureCall{shield_line},
          .plain_head = false,
          .note =
              "ShieldGemma2ForImageClassification keeps the logits of yes and no and cannot generate: the decode "
              "step is that of the Gemma 3 inside; called without logits_to_keep=1 it computes the logits of every "
              "position (--logits all)"};
}

using Gemma3Model = Assembly<Gemma3Family>;

inline Gemma3Model make_model(Context& c, const Gemma3Family& g) {
  if (!g.classifier) return make_model<Gemma3Family>(c, g);
  Module outer(c, "model");
  return make_model<Gemma3Family>(c, g);
}

/// modeling_shieldgemma2.py, ShieldGemma2ForImageClassification.forward behind the model inside: the logits of yes and
/// of no behind the last token, whose indices come from the host, and their softmax.
inline Value yes_or_no(const Value& logits) {
  using namespace eager;
  const Value last = select(logits, 1, logits.size(1) - 1);
  Value index = from_host(logits.builder(), {2}, DType::int64);
  Value selected = gather_rows("index.Tensor", last, index, {logits.size(0), 2});
  index.reset();
  const Value probabilities = softmax(selected);
  return selected;
}

inline GemmaInputs make_inputs(Context& c, const Gemma3Family& g, const Sequences& s) {
  return make_gemma_inputs(c, g.vision, s);
}

/// modeling_gemma3.py, Gemma3Model.get_image_features.
inline Value image_features(Context& c, const Gemma3Model& m, const GemmaInputs& in, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {in.pixels, s.images});
  return insert_after_projector(c, forward(c, m.projector, insert_after_tower(c, tower.last)));
}

/// modeling_gemma3.py, Gemma3Model.forward from the masks on; `blocks` is a variable of that function.
inline Value gemma3_text(Context& c, const Gemma3Model& m, const Value& embeds, const Value& types,
                         const Value& attention_mask, Cache& cache) {
  const GemmaConfig& g = m.config->language;
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  Value blocks;
  LayerMasks masks;
  if (c.stack().makes_masks) {
    blocks = image_blocks(c, types);
    masks = image_block_masks(c, mask_shape(cache, batch, tokens), mask_shape(cache, batch, tokens, g.window),
                              attention_mask, blocks);
  }
  Value position_ids = text_positions(c, m.language, tokens);
  return forward(c, m.language, embeds, position_ids, masks, cache);
}

/// modeling_gemma3.py, Gemma3ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Gemma3Model& m, const GemmaInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    EmbeddedIds ids = embedded_ids(in.text.ids, m.config->placeholder_outside);
    Value embeds = embed(c, m.language, ids.ids);
    if (in.pixels) {
      features = batch_features(c, m, in, s);
      ids.placeholders = placeholder_mask(in.text.ids);
      features = to(features, embeds.dtype());
      embeds = masked_scatter(embeds, ids.placeholders, features);
    }
    hidden = gemma3_text(c, m, embeds, in.types, in.text.mask, cache);
  }
  if (!m.config->classifier) return head_output(c, m.head, hidden);
  if (c.labels)
    throw Error("plan.phase", "ShieldGemma2ForImageClassification returns no loss", "train the Gemma 3 inside it");
  const Value logits = head_output(c, m.head, hidden);
  hidden.reset();  // a variable of the model inside
  return yes_or_no(logits);
}

/// One token over the cache, called as the prefill is, with the token's type: then the masks are written out and keys
/// and values are repeated for their groups. (generate() leaves token_type_ids out after the first step.)
inline Value decode(Context& c, const Gemma3Model& m, const TextInputs& in, Cache& cache) {
  const Value types = c.b.existing("token_type_ids", Role::input, DType::int64, in.ids.shape());
  Value hidden;
  {
    InScope scope(c.b, m.model);
    EmbeddedIds ids = embedded_ids(in.ids, m.config->placeholder_outside);
    Value embeds = embed(c, m.language, ids.ids);
    hidden = gemma3_text(c, m, embeds, types, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
