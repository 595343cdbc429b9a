// SPDX-License-Identifier: Apache-2.0
// The loss in its three kinds: what each makes of the logits.
#include <gtest/gtest.h>

#include <vlmest/family/llava/family.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "training_support.hpp"

namespace vlmest::loss_test {
namespace {

constexpr std::int64_t vocabulary = 100;  // of test::llava()

Plan plan_of(Loss kind) {
  Plan p;
  p.batch = 2;
  p.text = 40;
  p.loss = kind;
  return p;
}

/// Tensors of the vocabulary's width that a phase allocates, by type.
int wide(const Graph& g, int phase, DType t) {
  const Phase& p = g.phases[static_cast<std::size_t>(phase)];
  int n = 0;
  for (const Tensor& x : g.tensors)
    n += x.alias_of == none && x.dtype == t && x.role == Role::activation && x.shape.rank() > 1 &&
         x.shape[-1] == vocabulary && x.born >= p.first && x.born < p.last;
  return n;
}
Flops products(const Graph& g, int phase, std::string_view op) {
  const Phase& p = g.phases[static_cast<std::size_t>(phase)];
  Flops f{};
  for (NodeId i = p.first; i < p.last; ++i)
    if (op == g.node(i).name) f += cost(g.op(g.node(i))).flops;
  return f;
}

TEST(Loss, UnfusedMakesTwoWideCopiesAndTwoGradients) {
  const Graph g = test::training(test::llava(), plan_of(Loss::unfused));
  EXPECT_EQ(wide(g, 0, DType::bf16), 1);  // logits
  EXPECT_EQ(wide(g, 0, DType::fp32), 2);  // their copy, log probabilities
  EXPECT_EQ(wide(g, 1, DType::fp32), 2);
  EXPECT_EQ(wide(g, 1, DType::bf16), 1);
}

TEST(Loss, FusedWritesTheGradientOverTheLogits) {
  const Graph g = test::training(test::llava(), plan_of(Loss::fused));
  EXPECT_EQ(wide(g, 0, DType::bf16), 1);
  EXPECT_EQ(wide(g, 0, DType::fp32), 0);
  EXPECT_EQ(wide(g, 1, DType::fp32), 0);
  EXPECT_EQ(wide(g, 1, DType::bf16), 0);
  EXPECT_EQ(test::count(g, 0, "liger_cross_entropy"), 1);
}

TEST(Loss, FusedProfileFusesIt) {
  Plan p = plan_of(Loss::unfused);
  p.runtime = runtime_id("fused");
  EXPECT_EQ(test::count(test::training(test::llava(), p), 0, "liger_cross_entropy"), 1);
}

// The chunk of fused_linear_cross_entropy.py: next_power_of_2(ceil(BT / ceil(V / H))).
TEST(Loss, ChunksAreAsLargeAsTheHiddenStates) {
  EXPECT_EQ(loss_chunk(4096 * 4, 4096, 32000), 2048);
  EXPECT_EQ(loss_chunk(1000, 2048, 151936), 16);  // 75 slices of 14
  EXPECT_EQ(loss_chunk(84, 256, 100), 128);       // a vocabulary below the width: one slice
}

TEST(Loss, ChunkedComputesBothGradientsInTheForward) {
  Vlm m = test::llava();
  auto& language = std::get<LlamaConfig>(get<LlavaFamily>(m.family).language);
  language.vocab = 1000;
  const Plan p = plan_of(Loss::chunked);
  const std::int64_t tokens = 2 * make_sequences(m, p).seq, hidden = 256;
  const Graph chunked = test::training(m, p), whole = test::training(m, plan_of(Loss::fused));
  const std::int64_t chunk = loss_chunk(tokens, hidden, 1000), slices = (tokens + chunk - 1) / chunk;
  ASSERT_GT(slices, 1);
  EXPECT_EQ(test::count(chunked, 0, "liger_cross_entropy"), slices);
  // Logits, and with them two products for each token, all in the forward; no more than two slices at a time.
  const Flops once = flops(Macs(tokens * hidden * 1000));
  EXPECT_EQ(products(chunked, 0, "mm") - products(whole, 0, "mm"), once * 2);
  EXPECT_EQ(products(whole, 1, "mm") - products(chunked, 1, "mm"), once * 2);
  std::vector<int> alive(chunked.nodes.size() + 1);
  for (const Tensor& t : chunked.tensors)
    if (t.alias_of == none && t.shape.rank() == 2 && t.shape[0] <= chunk && t.shape[1] == 1000 && t.dies != none)
      for (NodeId i = t.born; i < t.dies; ++i) ++alive[static_cast<std::size_t>(i)];
  EXPECT_EQ(*std::max_element(alive.begin(), alive.end()), 2);
}

TEST(Loss, ChunkedLeavesAFrozenHeadsGradientOut) {
  Plan p = plan_of(Loss::chunked);
  p.trainable.language = false;
  const Graph g = test::training(test::llava(), p);
  const Phase& forward = g.phases[0];
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none || t.role == Role::weight || t.born < forward.first || t.born >= forward.last) continue;
    EXPECT_FALSE(t.shape == (Shape{vocabulary, 256})) << t.name;
  }
}

}  // namespace
}  // namespace vlmest::loss_test
