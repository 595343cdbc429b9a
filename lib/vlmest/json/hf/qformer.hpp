// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/qformer.hpp>

namespace vlmest::json::hf {

/// Blip2QFormerConfig, InstructBlipQFormerConfig; encoder_hidden_size is the caller's to say: of BLIP-2 the tower's
/// width whatever the config says (Blip2Config.__post_init__). InstructBLIP's has what text needs, whatever
/// use_qformer_text_input says.
inline QFormerConfig read_qformer(const Reader& r, std::int64_t encoder_hidden, bool instructed) {
  QFormerConfig d;
  r.without_effect({"encoder_hidden_size", "position_embedding_type"});
  if (!instructed) r.without_effect({"vocab_size", "max_position_embeddings"});
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.cross_every = r.integer("cross_attention_frequency", d.cross_every, 1, 1024);
  d.encoder_hidden = encoder_hidden;
  d.instructed = instructed;
  if (instructed) {
    d.vocab = r.integer("vocab_size", d.vocab);
    d.positions = r.integer("max_position_embeddings", d.positions, 1, 1 << 24);
  } else {
    d.text_input = r.boolean("use_qformer_text_input", d.text_input);
  }
  d.hidden_dropout = read_dropout(r, "hidden_dropout_prob", 0.1);
  d.attention_dropout = read_dropout(r, "attention_probs_dropout_prob", 0.1);
  d.activation = parse_activation(r.string("hidden_act", "gelu"));
  divides(r, "num_attention_heads", d.hidden, d.heads);
  return d;
}

}  // namespace vlmest::json::hf
