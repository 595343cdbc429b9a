// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <vlmest/json/hf/text.hpp>

/// Language models with DeepSeek's experts and latent attention out of a Hugging Face config: transformers 5.17,
/// models/deepseek_v3/configuration_deepseek_v3.py and models/mistral4/configuration_mistral4.py.
namespace vlmest::json::hf {

/// Grouped experts beside shared ones in a model of that width, whose number the classes' attribute_map knows under two
/// names; `m` holds the class's defaults.
inline GroupedMoeConfig read_grouped_experts(const Reader& r, GroupedMoeConfig m, std::int64_t hidden,
                                             Activation activation) {
  MoeConfig& e = m.experts;
  e.hidden = hidden;
  e.activation = activation;
  e.inner = r.integer("moe_intermediate_size", e.inner, 1, 1 << 24);
  e.experts = r.integer(r.either("n_routed_experts", "num_local_experts"), e.experts, 2, 1023);
  e.top_k = r.integer("num_experts_per_tok", e.top_k, 1, 1023);
  e.normalised = r.boolean("norm_topk_prob", e.normalised);
  m.shared = r.integer("n_shared_experts", m.shared, 1, 1023);
  m.groups = r.integer("n_group", m.groups, 1, 1023);
  m.top_groups = r.integer("topk_group", m.top_groups, 1, 1023);
  if (e.top_k > e.experts)
    r.fail("num_experts_per_tok", std::to_string(e.top_k) + " of " + std::to_string(e.experts) + " experts",
           "give at most n_routed_experts");
  // Each group is judged by its best two experts.
  if (e.experts % m.groups != 0 || e.experts / m.groups < 2 || m.top_groups > m.groups)
    r.fail("n_group",
           std::to_string(e.experts) + " experts in " + std::to_string(m.groups) + " groups, of which " +
               std::to_string(m.top_groups) + " are taken",
           "groups are equal, of two experts at least, and topk_group is at most n_group");
  return m;
}

/// A q_lora_rank of null leaves queries uncompressed.
inline LatentHeads read_latent_heads(const Reader& r, LatentHeads d) {
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  if (r.integer("num_key_value_heads", d.heads, 1, 1 << 16) != d.heads)
    r.fail("num_key_value_heads", "every head has keys and values of its own", "give as many as num_attention_heads");
  d.q_rank = r.is_null("q_lora_rank") ? 0 : r.integer("q_lora_rank", d.q_rank, 1, 1 << 20);
  d.kv_rank = r.integer("kv_lora_rank", d.kv_rank, 1, 1 << 20);
  d.rope_dim = r.integer("qk_rope_head_dim", d.rope_dim, 2, 1 << 16);
  d.plain_dim = r.integer("qk_nope_head_dim", d.plain_dim, 1, 1 << 16);
  d.v_dim = r.integer("v_head_dim", d.v_dim, 1, 1 << 16);
  if (d.rope_dim % 2 != 0) r.fail("qk_rope_head_dim", "rotary embeddings need an even head size");
  d.bias = r.boolean("attention_bias", d.bias);
  d.dropout = read_dropout(r, "attention_dropout", 0.0);
  d.interleaved = r.boolean("rope_interleave", d.interleaved);
  return d;
}

/// `d` holds the class's defaults.
inline DeepseekConfig read_deepseek(const Reader& r, DeepseekConfig d) {
  d.vocab = r.integer("vocab_size", d.vocab);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.attention = read_latent_heads(r, d.attention);
  d.activation = parse_activation(r.string("hidden_act", "silu"));
  d.moe = read_grouped_experts(r, d.moe, d.attention.hidden, d.activation);
  d.dense_layers = r.integer("first_k_dense_replace", d.dense_layers, 0, 1024);
  return d;
}

/// DeepseekV3Config. Layers that predict further tokens (num_nextn_predict_layers) are not loaded.
inline DecoderConfig read_deepseek_v3(const Reader& r) { return read_deepseek(r, {}); }

/// Mistral4Config.
inline DecoderConfig read_mistral4(const Reader& r) {
  DeepseekConfig d{.vocab = 131072, .intermediate = 12288, .layers = 36, .dense_layers = 0};
  d.attention = {.hidden = 4096, .heads = 32, .q_rank = 1024, .kv_rank = 256, .plain_dim = 64, .scaled_queries = true};
  d.moe = {.experts = {.hidden = 4096, .inner = 2048, .experts = 128, .top_k = 4},
           .groups = 1,
           .top_groups = 1,
           .router = GroupedRouter::softmax};
  check_query_scale(r);
  return read_deepseek(r, std::move(d));
}

}  // namespace vlmest::json::hf
