// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/text.hpp>
#include <vlmest/nn/decoder/t5_blocks.hpp>

namespace vlmest::json::hf {

/// T5Config: transformers 5.17, models/t5/configuration_t5.py. What feed_forward_proj says of the activation, keys of
/// their own override. Releases whose tie_word_embeddings is false have an output head of their own (transformers ties
/// it by its classes, and leaves it alone where the checkpoint's two tensors differ: modeling_utils.py, tie_weights)
/// and do not scale what goes into it; a config that transformers 5 wrote says so as scale_decoder_outputs.
inline T5Config read_t5(const Reader& r) {
  T5Config d;
  r.without_effect({"n_positions", "relative_attention_max_distance"});
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer(r.either("d_model", "hidden_size"), d.hidden, 1, 1 << 20);
  d.head_dim = r.integer(r.either("d_kv", "head_dim"), d.head_dim, 1, 1 << 16);
  d.intermediate = r.integer("d_ff", d.intermediate, 1, 1 << 24);
  d.encoder_layers = r.layers(r.either("num_layers", "num_hidden_layers"), d.encoder_layers);
  d.decoder_layers = r.layers("num_decoder_layers", d.encoder_layers);
  d.heads = r.integer(r.either("num_heads", "num_attention_heads"), d.heads, 1, 1 << 16);
  d.buckets = r.integer("relative_attention_num_buckets", d.buckets, 4, 1 << 16);
  d.dropout = read_dropout(r, "dropout_rate", 0.1);
  const std::string projection = r.string("feed_forward_proj", "relu");
  const bool gated = projection.starts_with("gated-");
  const std::string name = gated ? projection.substr(6) : projection;
  if (name.find('-') != std::string::npos)
    r.fail("feed_forward_proj", "'" + projection + "' is no feed forward of T5", "use a name, or gated- and a name");
  d.gated = r.boolean("is_gated_act", gated);
  d.activation = parse_activation(r.string("dense_act_fn", projection == "gated-gelu" ? "gelu_new" : name));
  d.scaled = r.boolean("scale_decoder_outputs", r.boolean("tie_word_embeddings", true));
  d.tied = d.scaled;
  if (!r.boolean("is_encoder_decoder", true))
    r.fail("is_encoder_decoder", "T5 without its encoder is not modelled", "leave the key out");
  return d;
}

}  // namespace vlmest::json::hf
