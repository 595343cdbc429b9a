// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/internlm2.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/causal_lm.hpp>

/// InternLM2 alone, by the code that its checkpoints bring along: OpenGVLab/InternVL internvl_chat/internvl/model/
/// internlm2/modeling_internlm2.py, InternLM2ForCausalLM. It has no logits_to_keep: every forward makes the logits of
/// all its positions, and widens them to fp32.
namespace vlmest {

struct InternLm2Family {
  InternLm2Config language;
  bool tied = false;
};
constexpr FamilyTraits traits(const InternLm2Family&) {
  return {.features = feature_calls::no_images,
          .plain_head = false,
          .note = "InternLM2's own code makes the logits of every position, in fp32, whatever plan.logits says"};
}

struct InternLm2Lm {
  ScopeId model = 0;
  InternLm2Decoder language;
  Linear head;
};

/// In the order of InternLM2ForCausalLM.__init__.
inline InternLm2Lm make_model(Context& c, const InternLm2Family& g) {
  InternLm2Lm r;
  {
    Module m(c, "model", Part::language);
    r.model = m.scope;
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight, "output");
  return r;
}

/// Throws Error for images.
inline CausalLmInputs make_inputs(Context& c, const InternLm2Family&, const Sequences& s) {
  if (!s.images.empty()) image_processor::layout(image_processor::TextOnly{}, s.image);
  return {make_text_inputs(c, s.batch, s.seq, s.seq)};
}

inline Value last_hidden_state(Context& c, const InternLm2Lm& m, const TextInputs& in, Cache& cache) {
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, in.ids);
  return forward(c, m.language, std::move(embeds), in.mask, cache);
}

/// Over a fresh cache. A fused loss takes the place of its own; throws Error for the chunked one, which has no logits
/// that it could widen.
inline Value prefill(Context& c, const InternLm2Lm& m, const CausalLmInputs& in, const Sequences&, Cache& cache) {
  if (c.labels && loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out what this model does to its logits",
                "give plan.loss=unfused or fused");
  const Value hidden = last_hidden_state(c, m, in.text, cache);
  Value logits = forward(c, m.head, hidden);
  if (c.labels && loss_kind(c) == Loss::fused) return causal_lm_loss(c, logits, *c.labels);
  logits = finish_logits(LogitStep::widen, std::move(logits));
  return c.labels ? shifted_loss(logits, *c.labels) : logits;
}

/// One token over the cache.
inline Value decode(Context& c, const InternLm2Lm& m, const TextInputs& in, Cache& cache) {
  const Value hidden = last_hidden_state(c, m, in, cache);
  return finish_logits(LogitStep::widen, forward(c, m.head, hidden));
}

}  // namespace vlmest
