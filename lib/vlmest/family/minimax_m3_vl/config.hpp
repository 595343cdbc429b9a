// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/nn/experts.hpp>

namespace vlmest {

/// The branch that chooses which blocks of keys a query sees (transformers models/minimax_m3_vl, MiniMaxM3VLIndexer).
struct IndexerConfig {
  std::int64_t heads = 4;
  std::int64_t head_dim = 128;
  std::int64_t block = 128;       ///< keys that are chosen together
  std::int64_t topk_blocks = 16;  ///< of each query
  std::int64_t local_blocks = 1;  ///< nearest blocks that are always among them; 0: none
};

/// The language model of MiniMax-M3 (transformers models/minimax_m3_vl, MiniMaxM3VLTextModel): normed heads of which a
/// part turns, layers that see chosen blocks of keys beside layers that see all, experts beside one for every token in
/// most layers. Defaults: MiniMaxM3VLTextConfig.
struct MiniMaxM3Text {
  std::int64_t vocab = 200064;
  std::int64_t hidden = 6144;
  std::int64_t intermediate = 3072;  ///< of an expert
  std::int64_t dense_intermediate = 12288;
  std::int64_t shared_intermediate = 3072;  ///< of the expert that sees every token
  std::int64_t layers = 60;
  std::int64_t heads = 64;
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 128;
  std::int64_t rotary_dim = 128;   ///< channels of a head that turn
  bool attention_dropout = false;  ///< in training mode
  MoeConfig moe{.hidden = 6144, .inner = 3072, .experts = 128, .top_k = 4, .gate = ExpertGate::clamped_halves};
  IndexerConfig indexer;
  std::vector<bool> chooses;                 ///< per layer: "minimax_m3_sparse" in layer_types
  std::vector<bool> sparse;                  ///< per layer: experts, else a dense MLP
  Activation activation = Activation::silu;  ///< named by the config, not used: the gates have their own
};

inline std::int64_t vocabulary(const MiniMaxM3Text& g) { return g.vocab; }
inline std::int64_t width(const MiniMaxM3Text& g) { return g.hidden; }

}  // namespace vlmest
