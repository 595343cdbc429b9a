// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// The experts of Mistral4Config, whose attribute_map knows their number under two names.
inline void read_mistral4_experts(const Reader& r, Mistral4Config& d) {
  MoeConfig& m = d.moe;
  m.hidden = d.hidden;
  m.activation = d.activation;
  m.inner = r.integer("moe_intermediate_size", m.inner, 1, 1 << 24);
  m.experts = r.integer(r.given("n_routed_experts") ? "n_routed_experts" : "num_local_experts", m.experts, 2, 1023);
  m.top_k = r.integer("num_experts_per_tok", m.top_k, 1, 1023);
  d.shared_experts = r.integer("n_shared_experts", d.shared_experts, 1, 1023);
  d.groups = r.integer("n_group", d.groups, 1, 1023);
  d.top_groups = r.integer("topk_group", d.top_groups, 1, 1023);
  d.normalised = r.boolean("norm_topk_prob", d.normalised);
  d.dense_layers = r.integer("first_k_dense_replace", d.dense_layers, 0, 1024);
  if (m.top_k > m.experts)
    r.fail("num_experts_per_tok", std::to_string(m.top_k) + " of " + std::to_string(m.experts) + " experts",
           "give at most n_routed_experts");
  // Each group is judged by its best two experts.
  if (m.experts % d.groups != 0 || m.experts / d.groups < 2 || d.top_groups > d.groups)
    r.fail("n_group",
           std::to_string(m.experts) + " experts in " + std::to_string(d.groups) + " groups, of which " +
               std::to_string(d.top_groups) + " are taken",
           "groups are equal, of two experts at least, and topk_group is at most n_group");
}

/// models/mistral4/configuration_mistral4.py. A q_lora_rank of null leaves queries uncompressed.
inline DecoderConfig read_mistral4(const Reader& r) {
  Mistral4Config d;
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  if (r.integer("num_key_value_heads", d.heads, 1, 1 << 16) != d.heads)
    r.fail("num_key_value_heads", "every head has keys and values of its own", "give as many as num_attention_heads");
  d.q_rank = r.is_null("q_lora_rank") ? 0 : r.integer("q_lora_rank", d.q_rank, 1, 1 << 20);
  d.kv_rank = r.integer("kv_lora_rank", d.kv_rank, 1, 1 << 20);
  d.rope_dim = r.integer("qk_rope_head_dim", d.rope_dim, 2, 1 << 16);
  d.plain_dim = r.integer("qk_nope_head_dim", d.plain_dim, 1, 1 << 16);
  d.v_dim = r.integer("v_head_dim", d.v_dim, 1, 1 << 16);
  if (d.rope_dim % 2 != 0) r.fail("qk_rope_head_dim", "rotary embeddings need an even head size");
  d.attention_bias = r.boolean("attention_bias", d.attention_bias);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.interleaved = r.boolean("rope_interleave", d.interleaved);
  d.activation = parse_activation(r.string("hidden_act", "silu"));
  check_query_scale(r);
  read_mistral4_experts(r, d);
  return d;
}

}  // namespace vlmest::json::hf
