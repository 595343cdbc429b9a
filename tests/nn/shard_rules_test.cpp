// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/nn/sharding.hpp>

namespace shard_rules_test {
namespace {

using namespace vlmest;

TEST(ShardRules, PathsNameModulesAndParametersOfTheLanguageModel) {
  Builder b;
  b.enter(b.child("model"));
  const ScopeId vision = b.child("layers", 3, Part::vision);
  b.enter(b.child("language_model", none, Part::language));
  const ScopeId language = b.scope(), embeddings = b.child("embed_tokens");
  b.enter(b.child("layers", 3));
  b.enter(b.child("mlp"));
  const ScopeId gate = b.child("gate_proj"), experts = b.child("experts");
  b.enter(b.child("shared_expert"));
  const ScopeId shared = b.child("gate_proj");
  const ShardRules& sparse = shard_plans("qwen3_moe")->tensor;
  EXPECT_EQ(style_of(sparse, b.graph, gate), ShardStyle::colwise);
  EXPECT_EQ(style_of(sparse, b.graph, shared), ShardStyle::whole);
  EXPECT_EQ(style_of(sparse, b.graph, experts), ShardStyle::moe_tp_experts);
  EXPECT_EQ(style_of(sparse, b.graph, experts, "gate_up_proj"), ShardStyle::packed_colwise);
  EXPECT_EQ(style_of(sparse, b.graph, language), ShardStyle::whole);
  EXPECT_EQ(style_of({shard_rules::tied}, b.graph, embeddings), ShardStyle::embedding_rowwise);
  b.enter(vision);
  b.enter(b.child("mlp"));
  EXPECT_EQ(style_of(sparse, b.graph, b.child("gate_proj")), ShardStyle::whole);
}

TEST(ShardRules, EveryTypeHasOnePlanOrIsNotModelled) {
  for (const ShardPlans& p : shard_rules::plans) {
    EXPECT_EQ(shard_plans(p.type), &p);
    EXPECT_TRUE(any_rules(p.tensor)) << p.type;
    for (const std::string_view t : shard_rules::not_modelled) EXPECT_NE(t, p.type);
  }
  EXPECT_EQ(shard_plans("qwen3_vl_text"), nullptr);
}

/// What an op works on and gives, and what its backward does.
TEST(ShardRules, CollectivesAllocateWhatTheirCallsDo) {
  using namespace eager;
  Builder b;
  const Value x = b.existing("x", Role::input, DType::bf16, {2, 8, 16});
  const std::size_t before = b.graph.tensors.size();
  const Value same = all_reduce_(x, 4);
  EXPECT_EQ(b.graph.owner(same.id()), x.id()) << "in place";
  EXPECT_EQ(b.graph.tensors.size(), before);
  const Value sum = all_reduce(x, 4);
  EXPECT_NE(b.graph.owner(sum.id()), x.id()) << "on a copy";
  const Value whole = all_gather_last(x, 4);
  EXPECT_EQ(whole.shape(), Shape({2, 8, 64}));
  const auto& gather = std::get<CollectiveOp>(b.graph.op(b.graph.nodes[b.graph.nodes.size() - 2]));
  EXPECT_EQ(gather.bytes, Bytes(2 * 8 * 64 * 2));
  EXPECT_EQ(b.graph.nodes.back().name, std::string("cat"));
  const Value row = all_gather_last(b.existing("row", Role::input, DType::bf16, {1, 1, 16}), 4);
  EXPECT_EQ(b.graph.nodes.back().name, std::string("all_gather_into_tensor")) << "parts of one row lie side by side";
  const Value part = own_part(x, 4);
  EXPECT_EQ(part.shape(), Shape({2, 8, 4}));
  EXPECT_TRUE(is_contiguous(part));
}

}  // namespace
}  // namespace shard_rules_test
