// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/family/minimax_m3_vl/config.hpp>
#include <vlmest/json/hf/text.hpp>

/// transformers 5.17, models/minimax_m3_vl/configuration_minimax_m3_vl.py, MiniMaxM3VLTextConfig.
namespace vlmest::json::hf {

/// A list of numbers, one for each layer: those that are not 0 are marked. `none` is what an absent list means.
inline std::vector<bool> frequent_layers(const Reader& at, const char* key, std::int64_t layers, bool none) {
  const auto count = static_cast<std::size_t>(layers);
  if (!at.given(key)) return std::vector<bool>(count, none);
  const std::vector<std::int64_t> list = at.integers(key, {});
  if (list.size() != count)
    at.fail(key, "expected one number for each of the " + std::to_string(layers) + " layers", "0 is a layer without");
  std::vector<bool> marked;
  for (const std::int64_t n : list) marked.push_back(n != 0);
  return marked;
}

/// The indexer's sizes: those of sparse_attention_config, where checkpoints have them, come before the class's own
/// keys.
inline IndexerConfig read_indexer(const Reader& t, const Reader& sparse) {
  IndexerConfig g;
  const auto size = [&](const char* key, const char* of_checkpoint, std::int64_t absent, std::int64_t least,
                        std::int64_t most) {
    if (!sparse.has(of_checkpoint)) {
      refuse_null(t, {key});
      return t.integer(key, absent, least, most);
    }
    t.without_effect({key});
    refuse_null(sparse, {of_checkpoint});
    return sparse.integer(of_checkpoint, absent, least, most);
  };
  g.heads = size("index_n_heads", "sparse_num_index_heads", g.heads, 1, 1 << 16);
  g.head_dim = size("index_head_dim", "sparse_index_dim", g.head_dim, 2, 1 << 16);
  g.block = size("index_block_size", "sparse_block_size", g.block, 1, 1 << 24);
  g.topk_blocks = size("index_topk_blocks", "sparse_topk_blocks", g.topk_blocks, 1, 1 << 24);
  g.local_blocks = size("index_local_blocks", "sparse_local_block", g.local_blocks, 0, 1 << 24);
  // Of the checkpoint's own code; the class scores by the largest product and knows no first blocks.
  sparse.without_effect(
      {"use_sparse_attention", "sparse_score_type", "sparse_init_block", "sparse_disable_index_value"});
  return g;
}

/// What is declared as a share of a head that turns; frequencies that depend on the length are not modelled.
inline std::int64_t read_minimax_rotary_dim(const Reader& t, std::int64_t head_dim) {
  const Reader rope = rope_parameters(t);
  for (const char* type : {"full_attention", "minimax_m3_sparse"})
    if (rope.has(type)) rope.fail(type, "the model has one set of rotary parameters for all layers", "give them once");
  const std::string type = rope.string("rope_type", rope.string("type", "default"));
  if (type != "default" && type != "linear" && type != "llama3" && type != "yarn")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "' is not modelled here", "known: default, linear, llama3, yarn");
  t.without_effect({"rotary_dim"});  // partial_rotary_factor says it
  return read_rotary_dim(t, head_dim, 1.0);
}

/// num_local_experts, or by its attribute_map num_experts.
inline MoeConfig read_minimax_experts(const Reader& t, MoeConfig m, std::int64_t hidden) {
  m.hidden = hidden;
  m.inner = t.integer("intermediate_size", m.inner, 1, 1 << 24);
  m.experts = t.integer(t.either("num_local_experts", "num_experts"), m.experts, 1, 1023);
  m.top_k = t.integer("num_experts_per_tok", m.top_k, 1, 1023);
  if (m.top_k > m.experts)
    t.fail("num_experts_per_tok", std::to_string(m.top_k) + " of " + std::to_string(m.experts) + " experts",
           "give at most num_local_experts");
  if (t.boolean("output_router_logits", false))
    t.fail("output_router_logits", "logits of the routers, which the model would keep, are not modelled",
           "set it to false");
  return m;
}

/// Without layer_types and sparse_attention_freq no layer chooses what it sees; without mlp_layer_types and
/// moe_layer_freq all have experts.
inline void read_kinds_of_layers(const Reader& t, const Reader& sparse, MiniMaxM3Text& d) {
  if (t.given("layer_types")) {
    d.chooses = marked_layers(t, "layer_types", d.layers, "full_attention", "minimax_m3_sparse");
    sparse.without_effect({"sparse_attention_freq"});
  } else {
    d.chooses = frequent_layers(sparse, "sparse_attention_freq", d.layers, false);
  }
  if (t.given("mlp_layer_types")) {
    d.sparse = marked_layers(t, "mlp_layer_types", d.layers, "dense", "sparse");
    t.without_effect({"moe_layer_freq"});
  } else {
    d.sparse = frequent_layers(t, "moe_layer_freq", d.layers, true);
  }
}

inline MiniMaxM3Text read_minimax_text(const Reader& t) {
  refuse_null(t, {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                  "num_key_value_heads", "head_dim", "dense_intermediate_size", "shared_intermediate_size",
                  "num_local_experts", "num_experts_per_tok"});
  MiniMaxM3Text d;
  d.vocab = t.integer("vocab_size", d.vocab);
  d.hidden = t.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.layers = t.layers("num_hidden_layers", d.layers);
  const Heads h = heads(t, d.hidden, d.heads, d.kv_heads, d.head_dim);
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  d.rotary_dim = read_minimax_rotary_dim(t, d.head_dim);
  d.moe = read_minimax_experts(t, d.moe, d.hidden);
  d.intermediate = d.moe.inner;
  d.dense_intermediate = t.integer("dense_intermediate_size", d.dense_intermediate, 1, 1 << 24);
  d.shared_intermediate = t.integer("shared_intermediate_size", d.shared_intermediate, 1, 1 << 24);
  d.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  const Reader sparse = t.object("sparse_attention_config");
  d.indexer = read_indexer(t, sparse);
  read_kinds_of_layers(t, sparse, d);
  if (d.heads % d.indexer.heads != 0)
    for (const bool chooses : d.chooses)
      if (chooses)
        (sparse.has("sparse_num_index_heads") ? sparse : t)
            .fail(sparse.has("sparse_num_index_heads") ? "sparse_num_index_heads" : "index_n_heads",
                  "each chooses for as many of the " + std::to_string(d.heads) + " query heads",
                  "give a number that divides num_attention_heads");
  // The gate is the class's own whatever hidden_act says; the rest belongs to the checkpoint's own code.
  t.without_effect({"hidden_act", "swiglu_alpha", "swiglu_limit", "router_jitter_noise", "use_gemma_norm",
                    "attention_output_gate", "use_qk_norm", "qk_norm_type", "n_shared_experts", "scoring_func",
                    "use_routing_bias", "num_mtp_modules", "num_nextn_predict_layers"});
  return d;
}

}  // namespace vlmest::json::hf
