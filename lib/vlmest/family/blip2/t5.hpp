// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/blip2/image.hpp>
#include <vlmest/nn/family/t5.hpp>

namespace vlmest {

/// BLIP-2 and InstructBLIP with T5 (transformers models/blip_2, Blip2ForConditionalGeneration without
/// use_decoder_only_language_model, and the classes like it that image.hpp names): the encoder reads images and text,
/// the decoder writes the answer.
struct Blip2T5Family {
  Blip2Vision vision;
  QFormerConfig qformer;
  T5Config language;
  std::int64_t query_tokens = 32;
  bool videos = false;  ///< its pixels are frames of videos
};

constexpr FamilyTraits traits(const Blip2T5Family& g) {
  FamilyTraits t = blip2_traits(g);
  t.bare_projections = t.encoder_decoder = true;
  return t;
}

struct Blip2T5Model {
  const Blip2T5Family* config = nullptr;
  ScopeId root = 0;
  Blip2Eyes eyes;
  T5Model language;
};

/// In the order of Blip2ForConditionalGeneration.__init__.
inline Blip2T5Model make_model(Context& c, const Blip2T5Family& g) {
  Blip2T5Model r{.config = &g, .root = c.b.scope()};
  r.eyes = make_blip2_eyes(c, g, g.language.hidden);
  Module l(c, "language_model", Part::language);
  r.language = make_t5(c, g.language);
  return r;
}

struct Blip2T5Inputs {
  TextInputs text;
  Blip2Images images;
  Value decoder_ids;  ///< at inference: the token that decoding starts with
  Value labels;       ///< in training
};

inline Blip2T5Inputs make_inputs(Context& c, const Blip2T5Family& g, const Sequences& s) {
  Blip2T5Inputs r;
  r.images = make_blip2_images(c, g, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (c.labels)
    r.labels = c.b.existing("labels", Role::input, DType::int64, {s.batch, s.target});
  else
    r.decoder_ids = c.b.existing("decoder_input_ids", Role::input, DType::int64, {s.batch, 1});
  return r;
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Blip2T5Model& m, const Blip2T5Inputs& in, const Sequences&, Cache& cache) {
  InScope scope(c.b, m.root);
  const Blip2Embeds e = embed_images(c, m.eyes, in.images, in.text.ids, [&](const Value& ids) {
    return input_embedding(c, forward(c, m.language.shared, ids));
  });
  return forward(c, m.language, e.embeds, in.text.mask, in.decoder_ids, cache);
}

/// One token over the cache: generate() hands over to the language model alone. The mask is the encoder's.
inline Value decode(Context& c, const Blip2T5Model& m, const TextInputs& in, Cache& cache) {
  InScope scope(c.b, m.language.scope);
  return decode_and_score(c, m.language, in.ids, cache.encoder_states, in.mask, cache);
}

}  // namespace vlmest
