// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/decoder/opt.hpp>

namespace vlmest::json::hf {

/// OPTConfig: transformers 5.17, models/opt/configuration_opt.py.
inline OptConfig read_opt(const Reader& r) {
  OptConfig d;
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("ffn_dim", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.positions = r.integer("max_position_embeddings", d.positions, 1, 1 << 24);
  d.norm_before = r.boolean("do_layer_norm_before", d.norm_before);
  d.final_norm = !r.boolean("_remove_final_layer_norm", false);
  d.bias = r.boolean("enable_bias", d.bias);
  d.affine = r.boolean("layer_norm_elementwise_affine", d.affine);
  d.dropout = read_dropout(r, "dropout", 0.1);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.activation = parse_activation(r.string("activation_function", "relu"));
  divides(r, "num_attention_heads", d.hidden, d.heads);
  d.embedding = r.integer("word_embed_proj_dim", d.hidden, 1, 1 << 20);
  return d;
}

}  // namespace vlmest::json::hf
