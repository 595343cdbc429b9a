// SPDX-License-Identifier: Apache-2.0
// Whole models under autocast.
#include <map>

#include <gtest/gtest.h>

#include <vlmest/nn/stack/registry.hpp>

#include "training_support.hpp"

namespace vlmest::autocast_model_test {
namespace {

Plan amp() {
  Plan p;
  p.text = 12;
  p.amp = true;
  return p;
}
bool is_cast(const Tensor& t) { return std::string_view(t.name) == "weight cast" && t.alias_of == none; }

/// How often each weight was cast while a phase ran.
std::map<TensorId, int> casts(const Graph& g, std::size_t phase) {
  std::map<TensorId, int> r;
  const Phase& p = g.phases[phase];
  for (NodeId n = p.first; n < p.last; ++n) {
    if (std::string_view(g.node(n).name) != "_to_copy") continue;
    const TensorId from = g.inputs(g.node(n)).front();
    if (g.tensor(from).role == Role::weight) ++r[from];
  }
  return r;
}

TEST(AutocastModel, EveryWeightIsFp32AndEveryLargeProductIsNot) {
  for (const Vlm& vlm : {test::llava(), test::blip2()}) {
    const Graph g = test::training(vlm, amp());
    int products = 0;
    for (const Node& n : g.nodes) {
      const auto* m = std::get_if<Matmul>(&g.op(n));
      if (!m || path(g, n.scope).find("rotary") != std::string::npos) continue;
      ++products;
      EXPECT_EQ(m->dtype, DType::bf16) << path(g, n.scope) << " " << n.name;
    }
    EXPECT_GT(products, 30);
    for (const Tensor& t : g.tensors) {
      const bool kept = t.role == Role::weight || t.role == Role::gradient || t.role == Role::optimizer_state;
      EXPECT_TRUE(!kept || t.dtype == DType::fp32) << t.name;
    }
  }
}

TEST(AutocastModel, AWeightIsCastOncePerForward) {
  for (const Checkpointing c : {Checkpointing::off, Checkpointing::full}) {
    Plan plan = amp();
    plan.checkpointing = c;
    const Graph g = test::training(test::llava(), plan);
    const auto forward = casts(g, 0), backward = casts(g, 1);
    EXPECT_GT(forward.size(), 20U);
    for (const auto& [weight, times] : forward) EXPECT_EQ(times, 1) << g.tensor(weight).name;
    // A checkpointed layer runs again outside of the forward's context.
    EXPECT_EQ(backward.empty(), c == Checkpointing::off);
    for (const auto& [weight, times] : backward) EXPECT_EQ(times, 1) << g.tensor(weight).name;
    for (const Tensor& t : g.tensors) EXPECT_TRUE(!is_cast(t) || t.dies != none);
  }
}

TEST(AutocastModel, InferenceKeepsItsCopiesForTheNextStep) {
  const Graph g = test::inference(test::llava(), amp());
  EXPECT_GT(casts(g, 0).size(), 20U);
  EXPECT_TRUE(casts(g, 1).empty());
  for (const Tensor& t : g.tensors) EXPECT_TRUE(!is_cast(t) || t.dies >= g.phases[1].last);
}

TEST(AutocastModel, TheCacheHasTheTypeOfRotatedKeys) {
  const auto types = [](const Vlm& vlm) {
    const Graph g = test::inference(vlm, amp());
    std::vector<DType> r;
    for (const Tensor& t : g.tensors)
      if (t.role == Role::kv_cache && t.alias_of == none && t.born < g.phases[0].last) r.push_back(t.dtype);
    return r;
  };
  EXPECT_EQ(types(test::llava()), std::vector<DType>(6, DType::fp32)) << "cosines and sines are fp32";
  EXPECT_EQ(types(test::blip2()), std::vector<DType>(4, DType::bf16));
}

TEST(AutocastModel, CopiedLayersCastLikeThoseThatRan) {
  for (const Checkpointing c : {Checkpointing::off, Checkpointing::full, Checkpointing::selective})
    for (const std::int64_t rank : {0, 8}) {
      Plan plan = amp();
      plan.checkpointing = c;
      plan.lora.rank = rank;
      EXPECT_EQ(test::rows(test::training(test::llava(), plan, false)),
                test::rows(test::training(test::llava(), plan, true)));
    }
  const auto inference = [](bool copies) {
    Builder b;
    b.copy_layers = copies;
    const Vlm vlm = test::llava();
    const Plan plan = amp();
    Context c{b, plan, stack_of(plan)};
    const Sequences s = make_sequences(vlm, plan);
    build_inference(c, vlm, s, s.seq + 3);
    return test::rows(b.graph);
  };
  EXPECT_EQ(inference(false), inference(true));
}

}  // namespace
}  // namespace vlmest::autocast_model_test
