// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/florence2/projector.hpp>
#include <vlmest/nn/decoder/bart.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/encoder_decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/vision/davit.hpp>

namespace vlmest {

/// Florence-2 (transformers 5.17 models/florence2): DaViT before BART, whose encoder reads picture and text and whose
/// decoder writes the answer.
struct Florence2Family {
  DavitVision vision;
  Florence2ProjectorConfig projector;
  BartConfig language;
};

constexpr FamilyTraits traits(const Florence2Family&) {
  return {.features = feature_calls::tensor, .plain_head = false, .encoder_decoder = true};
}

struct Florence2Model {
  const Florence2Family* config = nullptr;
  ScopeId root = 0, model = 0, language_scope = 0;
  DavitTower vision;
  Florence2Projector projector;
  Embedding shared;
  BartStack encoder, decoder;
  Linear head;
};

/// In the order of Florence2Model.__init__, BartModel.__init__ and Florence2ForConditionalGeneration.__init__.
inline Florence2Model make_model(Context& c, const Florence2Family& g) {
  refuse_for_encoder_decoder(c, "BART");
  Florence2Model r{.config = &g, .root = c.b.scope()};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector = make_projector(c, g.projector);
    }
    Module l(c, "language_model", Part::language);
    r.language_scope = l.scope;
    r.shared = make_embedding(c, "shared", g.language.vocab, g.language.hidden);
    r.encoder = make_bart_stack(c, g.language, r.shared, false);
    r.decoder = make_bart_stack(c, g.language, r.shared, true);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, true, r.shared.weight);
  return r;
}

struct Florence2Inputs {
  TextInputs text;
  Value pixels;
  Value decoder_ids;  ///< at inference: the token that decoding starts with
  Value labels;       ///< in training
};

inline Florence2Inputs make_inputs(Context& c, const Florence2Family& g, const Sequences& s) {
  Florence2Inputs r;
  if (!s.images.empty())
    r.pixels = c.b.existing(
        "pixel_values", Role::input, c.dtype(),
        {static_cast<std::int64_t>(s.images.size()), g.vision.channels, g.vision.image_size, g.vision.image_size});
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (c.labels)
    r.labels = c.b.existing("labels", Role::input, DType::int64, {s.batch, s.target});
  else
    r.decoder_ids = c.b.existing("decoder_input_ids", Role::input, DType::int64, {s.batch, 1});
  return r;
}

inline std::vector<VisionChunk<Florence2Inputs>> vision_chunks(Context& c, const Florence2Inputs& in,
                                                               const Sequences& s) {
  return cut_rows(c, in, s, s.images);
}

/// modeling_florence2.py, Florence2Model.get_image_features: [N, 1 + places, projection_dim].
inline Value image_features(Context& c, const Florence2Model& m, const Florence2Inputs& in, const Sequences&) {
  const Value map = forward(c, m.vision, in.pixels);
  return forward(c, m.projector, map);
}

/// modeling_florence2.py, Florence2Model.forward behind the encoder, and the head.
inline Value decode_and_score(Context& c, const Florence2Model& m, const Value& ids, const Value& states,
                              const Value& attention_mask, Cache& cache) {
  Value hidden;
  {
    InScope model(c.b, m.model);
    hidden = decode(c, m.config->language, m.decoder, ids, states, attention_mask, cache);
  }
  const Logits kept = c.labels ? Logits::all : c.plan.logits;
  return forward(c, m.head, kept_positions(hidden, kept));
}

/// modeling_florence2.py, Florence2ForConditionalGeneration.forward over a fresh cache. The encoder's states stay with
/// the cache: every later step is handed them.
inline Value prefill(Context& c, const Florence2Model& m, const Florence2Inputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  InScope root(c.b, m.root);
  const Value ids = c.labels ? shift_right(*c.labels) : in.decoder_ids;
  Value features, states;  // the output carries both
  Value hidden;
  {
    InScope model(c.b, m.model);
    Value embeds = input_embedding(c, scaled_embedding(c, m.shared, in.text.ids));
    Value mask;
    if (in.pixels) {
      features = batch_features(c, m, in, s);
      features = to(features, embeds.dtype());
      mask = placeholder_mask(in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
    }
    states = encode(c, m.config->language, m.encoder, embeds, in.text.mask);
    hidden = decode(c, m.config->language, m.decoder, ids, states, in.text.mask, cache);
  }
  if (!c.labels) {
    Value logits = forward(c, m.head, kept_positions(hidden, c.plan.logits));
    cache.encoder_states = std::move(states);
    return logits;
  }
  const Value logits = forward(c, m.head, hidden);
  Value wide = to(logits, DType::fp32);
  wide = view(std::move(wide), {-1, logits.size(2)});
  return cross_entropy(wide, view(*c.labels, {-1}));
}

/// One token over the cache and the encoder's states. The mask is the encoder's.
inline Value decode(Context& c, const Florence2Model& m, const TextInputs& in, Cache& cache) {
  InScope root(c.b, m.root);
  return decode_and_score(c, m, in.ids, cache.encoder_states, in.mask, cache);
}

}  // namespace vlmest
