// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/blip2/image.hpp>
#include <vlmest/nn/decoder/opt.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// BLIP-2 with OPT (transformers models/blip_2, Blip2ForConditionalGeneration): the Q-Former's queries, projected, are
/// scattered into the embeddings.
struct Blip2Family {
  Blip2Vision vision;
  QFormerConfig qformer;
  OptConfig language;
  std::int64_t query_tokens = 32;
  bool tied = true;
};

constexpr FamilyTraits traits(const Blip2Family&) { return {.features = FeatureCall{blip2_line}, .plain_head = false}; }

struct Blip2Model {
  const Blip2Family* config = nullptr;
  ScopeId root = 0, language_scope = 0;
  Blip2Eyes eyes;
  OptDecoder language;
  Linear head;
};

/// In the order of Blip2ForConditionalGeneration.__init__.
inline Blip2Model make_model(Context& c, const Blip2Family& g) {
  Blip2Model r{.config = &g, .root = c.b.scope()};
  r.eyes = make_blip2_eyes(c, g, g.language.hidden);
  Module l(c, "language_model", Part::language);
  r.language_scope = l.scope;
  {
    Module m(c, "model");
    Module d(c, "decoder");
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

struct Blip2Inputs {
  TextInputs text;
  Value pixels;
};

inline Blip2Inputs make_inputs(Context& c, const Blip2Family& g, const Sequences& s) {
  Blip2Inputs r;
  r.pixels = make_blip2_pixels(c, g, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// modeling_opt.py, OPTForCausalLM.forward.
inline Value forward(Context& c, const Blip2Model& m, Value embeds, const Value& mask, Logits logits, Cache& cache) {
  InScope in(c.b, m.language_scope);
  Value hidden = forward(c, m.language, std::move(embeds), mask, cache);
  return forward(c, m.head, kept_positions(hidden, logits));
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Blip2Model& m, const Blip2Inputs& in, const Sequences&, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.root);
  Blip2Embeds e = embed_images(c, m.eyes, in.pixels, in.text.ids, m.language.embed_tokens);
  if (c.labels && loss_kind(c) != Loss::unfused) {
    InScope language(c.b, m.language_scope);
    const Value hidden = forward(c, m.language, std::move(e.embeds), in.text.mask, cache);
    return head_output(c, m.head, hidden);
  }
  Value logits = forward(c, m, e.embeds, in.text.mask, c.labels ? Logits::all : c.plan.logits, cache);
  if (!c.labels) return logits;
  const Value labelled = slice(logits, 1, -c.labels->size(1), logits.size(1));
  return causal_lm_loss(c, labelled, *c.labels);
}

/// One token over the cache: generate() hands over to the language model alone.
inline Value decode(Context& c, const Blip2Model& m, const TextInputs& in, Cache& cache) {
  Value embeds = embed(c, m.language, in.ids);
  return forward(c, m, std::move(embeds), in.mask, Logits::last, cache);
}

}  // namespace vlmest
