// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/family/blip2/image.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// BLIP-2 and InstructBLIP with a language model without an encoder (transformers models/blip_2,
/// Blip2ForConditionalGeneration, and the classes like it that image.hpp names): the Q-Former's queries, projected, are
/// scattered into the embeddings.
template <class Text>
struct Blip2Causal {
  Blip2Vision vision;
  QFormerConfig qformer;
  Text language;
  std::int64_t query_tokens = 32;
  bool tied = true;
  bool videos = false;  ///< its pixels are frames of videos
};
using Blip2Family = Blip2Causal<OptConfig>;
using Blip2DecoderFamily = Blip2Causal<DecoderConfig>;

template <class Text>
constexpr FamilyTraits traits(const Blip2Causal<Text>& g) {
  return blip2_traits(g);
}

template <class Text>
struct Blip2Model {
  using Language = decltype(make_language(std::declval<Context&>(), std::declval<const Text&>()));

  const Blip2Causal<Text>* config = nullptr;
  ScopeId root = 0, language_scope = 0, model = 0;
  Blip2Eyes eyes;
  Language language;
  Linear head;
};

/// In the order of Blip2ForConditionalGeneration.__init__.
template <class Text>
Blip2Model<Text> make_model(Context& c, const Blip2Causal<Text>& g) {
  Blip2Model<Text> r{.config = &g, .root = c.b.scope()};
  r.eyes = make_blip2_eyes(c, g, width(g.language));
  Module l(c, "language_model", Part::language);
  r.language_scope = l.scope;
  {
    Module m(c, "model");
    r.model = m.scope;
    r.language = make_language(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct Blip2Inputs {
  TextInputs text;
  Blip2Images images;
};

template <class Text>
Blip2Inputs make_inputs(Context& c, const Blip2Causal<Text>& g, const Sequences& s) {
  Blip2Inputs r;
  r.images = make_blip2_images(c, g, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// …ForCausalLM.forward of the language model up to its head.
template <class Text>
Value last_hidden_state(Context& c, const Blip2Model<Text>& m, Value embeds, const Value& mask, Cache& cache) {
  InScope in(c.b, m.model);
  return forward(c, m.language, std::move(embeds), mask, cache);
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward over a fresh cache, which cuts the logits of labelled
/// positions out; modeling_instructblip.py, InstructBlipForConditionalGeneration.forward, which does not.
template <class Text>
Value prefill(Context& c, const Blip2Model<Text>& m, const Blip2Inputs& in, const Sequences&, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.root);
  Blip2Embeds e =
      embed_images(c, m.eyes, in.images, in.text.ids, [&](const Value& ids) { return embed(c, m.language, ids); });
  const bool other_loss = c.labels && loss_kind(c) != Loss::unfused;
  Value logits;
  {
    InScope language(c.b, m.language_scope);
    const Value hidden = last_hidden_state(c, m, other_loss ? std::move(e.embeds) : e.embeds, in.text.mask, cache);
    if (other_loss) return head_output(c, m.head, hidden);
    logits = forward(c, m.head, kept_positions(hidden, c.labels ? Logits::all : c.plan.logits));
  }
  if (!c.labels) return logits;
  if (m.config->qformer.instructed) return causal_lm_loss(c, logits, *c.labels);
  const Value labelled = slice(logits, 1, -c.labels->size(1), logits.size(1));
  return causal_lm_loss(c, labelled, *c.labels);
}

/// One token over the cache: generate() hands over to the language model alone.
template <class Text>
Value decode(Context& c, const Blip2Model<Text>& m, const TextInputs& in, Cache& cache) {
  InScope language(c.b, m.language_scope);
  Value embeds = embed(c, m.language, in.ids);
  const Value hidden = last_hidden_state(c, m, std::move(embeds), in.mask, cache);
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
