// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/shard_rules.hpp>

namespace vlmest {

/// A model that is being built as one of several ranks.
struct Sharding {
  int ranks = 1;
  ShardRules rules{};
};

/// The style of the current scope's module, or of its parameter.
inline ShardStyle shard_style(const Context& c, std::string_view parameter = {}) {
  return c.sharding ? style_of(c.sharding->rules, c.b.graph, c.b.scope(), parameter) : ShardStyle::whole;
}
/// Ranks among which layers are divided; 1 where they are whole.
inline int shard_ranks(const Context& c) { return c.sharding ? c.sharding->ranks : 1; }

constexpr bool splits_outputs(ShardStyle s) {
  return s == ShardStyle::colwise || s == ShardStyle::colwise_gather_output;
}
constexpr bool splits_inputs(ShardStyle s) { return s == ShardStyle::rowwise || s == ShardStyle::rowwise_split_input; }

/// This rank's part of a size. torch divides what is no multiple unevenly, or refuses it where outputs are gathered.
inline std::int64_t shard_of(const Context& c, std::int64_t size) {
  const int ranks = shard_ranks(c);
  if (size % ranks != 0)
    throw Error("layout.mesh",
                std::to_string(ranks) + " GPUs do not divide " + path(c.b.graph, c.b.scope()) + ", whose size is " +
                    std::to_string(size),
                "choose a number of GPUs that divides the heads, the MLP and the experts of the language model");
  return size / ranks;
}

/// Notes a parameter that is divided, or that counts as such though every rank has it whole.
inline void note_shard(Context& c, TensorId weight, bool divided = true) {
  c.b.graph.sharded.push_back({weight, divided ? shard_ranks(c) : 1});
}

}  // namespace vlmest
