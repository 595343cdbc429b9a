// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/t5.hpp>
#include <vlmest/nn/family/encoder_decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// T5ForConditionalGeneration.
struct T5Model {
  const T5Config* config = nullptr;
  ScopeId scope = 0;
  Embedding shared;
  T5Stack encoder, decoder;
  Linear head;
};

/// Throws Error for choices under which T5 is not modelled, and for FlashAttention, which its class refuses.
inline void refuse_unmodelled(const Context& c) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "T5 has no FlashAttention path: transformers refuses it", "use sdpa or eager");
  if (!c.stack().adds_position_biases)
    throw Error("plan.runtime", "kernels that add T5's position biases to fused attention are not modelled",
                "leave plan.runtime out");
  refuse_for_encoder_decoder(c, "T5");
  if (c.plan.checkpointing != Checkpointing::off && c.plan.checkpointed.language)
    throw Error("plan.checkpointing", "checkpointed T5 blocks, which hand position biases on, are not modelled",
                "use plan.checkpointed.language=false or none");
}

/// In the order of T5ForConditionalGeneration.__init__.
inline T5Model make_t5(Context& c, const T5Config& g) {
  refuse_unmodelled(c);
  T5Model m{.config = &g, .scope = c.b.scope()};
  m.shared = make_embedding(c, "shared", g.vocab, g.hidden);
  m.encoder = make_t5_stack(c, g, m.shared, false);
  m.decoder = make_t5_stack(c, g, m.shared, true);
  m.head = make_head(c, g.hidden, g.vocab, g.tied, m.shared.weight);
  return m;
}

/// modeling_t5.py, T5ForConditionalGeneration.forward behind the encoder: the logits, or with labels the loss.
inline Value decode_and_score(Context& c, const T5Model& m, const Value& decoder_ids, const Value& states,
                              const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const Value ids = c.labels ? shift_right(*c.labels) : decoder_ids;
  const Value output = decode(c, *m.config, m.decoder, ids, states, attention_mask, cache);
  const Value scaled = m.config->scaled ? mul_scalar(output) : output;
  const Value logits = forward(c, m.head, scaled);
  if (!c.labels) return logits;
  return cross_entropy(view(logits, {-1, logits.size(2)}), view(*c.labels, {-1}));
}

/// modeling_t5.py, T5ForConditionalGeneration.forward. The encoder's states stay with the cache: every later step is
/// handed them.
inline Value forward(Context& c, const T5Model& m, const Value& embeds, const Value& attention_mask,
                     const Value& decoder_ids, Cache& cache) {
  InScope in(c.b, m.scope);
  Value states = encode(c, *m.config, m.encoder, embeds, attention_mask);
  Value r = decode_and_score(c, m, decoder_ids, states, attention_mask, cache);
  if (!c.labels) cache.encoder_states = std::move(states);
  return r;
}

}  // namespace vlmest
