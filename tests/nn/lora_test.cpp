// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: where they go, what they make trainable, what runs and what is kept.
#include <gtest/gtest.h>

#include "training_support.hpp"

namespace vlmest::test::lora_test {
namespace {

struct Adapted {
  std::vector<std::string> modules;  ///< paths of the lora_A weights, in the order of the tensors
  Elements trainable{};
  TensorId first = none, last_other = none;
};
Adapted adapters(const Graph& g) {
  Adapted r;
  const auto loaded = static_cast<TensorId>(g.loaded().size());
  for (TensorId i = 0; i < loaded; ++i) {
    const Tensor& t = g.tensor(i);
    const std::string at = path(g, t.scope);
    const bool adapter = at.find(".lora_") != std::string::npos;
    if (!adapter && (t.role == Role::weight || t.role == Role::buffer)) r.last_other = i;
    if (!adapter) continue;
    if (r.first == none) r.first = i;
    r.trainable += t.storage;
    EXPECT_EQ(t.dtype, DType::fp32);
    if (at.ends_with(".lora_A.default")) r.modules.push_back(at.substr(0, at.size() - 15));
  }
  return r;
}
std::size_t gradients(const Graph& g) {
  return static_cast<std::size_t>(
      std::count_if(g.tensors.begin(), g.tensors.end(), [](const Tensor& t) { return t.role == Role::gradient; }));
}

TEST(Lora, DefaultTargetsAreTheAttentionOfTheLanguageModel) {
  const Graph g = training(llava(), lora_plan());
  const Adapted a = adapters(g);
  ASSERT_EQ(a.modules.size(), 4U * 3U);
  EXPECT_EQ(a.modules.front(), "model.language_model.layers.0.self_attn.q_proj");
  EXPECT_EQ(a.modules.back(), "model.language_model.layers.2.self_attn.o_proj");
  // Rank 8: q and o are 256 x 256, k and v 128 x 256.
  EXPECT_EQ(a.trainable, Elements(3 * 8 * (2 * (256 + 256) + 2 * (256 + 128))));
  EXPECT_EQ(gradients(g), 2 * a.modules.size());
  EXPECT_GT(a.first, a.last_other);  // added to the finished model
  for (const Tensor& t : g.tensors)
    if (t.role == Role::weight && t.shape == Shape{128, 256}) {
      EXPECT_TRUE(path(g, t.scope).ends_with("_proj.base_layer")) << path(g, t.scope);
    }
}

TEST(Lora, StatesFollowTheOrderOfTheModules) {
  const Graph g = training(llava(), lora_plan({"q_proj", "down_proj"}));
  std::vector<Shape> states;
  for (const Tensor& t : g.tensors)
    if (t.role == Role::optimizer_state) states.push_back(t.shape);
  ASSERT_EQ(states.size(), 3U * 2U * 2U * 2U);
  for (std::size_t layer = 0, i = 0; layer < 3; ++layer)
    for (const Shape& s : {Shape{8, 256}, Shape{256, 8}, Shape{8, 96}, Shape{256, 8}}) {
      EXPECT_EQ(states[i++], s);
      EXPECT_EQ(states[i++], s);
    }
}

struct Targets {
  std::vector<std::string> names;
  std::size_t adapters;
};
void PrintTo(const Targets& t, std::ostream* out) { *out << t.names.front(); }
class LoraTargets : public testing::TestWithParam<Targets> {};
TEST_P(LoraTargets, NameModules) {
  const Graph g = training(llava(), lora_plan(GetParam().names));
  EXPECT_EQ(adapters(g).modules.size(), GetParam().adapters);
  EXPECT_EQ(gradients(g), 2 * GetParam().adapters);
}
INSTANTIATE_TEST_SUITE_P(Names, LoraTargets,
                         testing::Values(Targets{{"gate_proj", "up_proj", "down_proj"}, 9}, Targets{{"all-linear"}, 21},
                                         Targets{{"lm_head"}, 1}, Targets{{"self_attn.q_proj"}, 3},
                                         Targets{{"layers.1.mlp.up_proj", "v_proj"}, 4}, Targets{{"q_proj"}, 3}));

TEST(Lora, VisionTowersHaveAdaptersWhereAsked) {
  Plan p = lora_plan({"fc1", "fc2"});
  p.lora.vision = true;
  const Graph g = training(llava(), p);
  EXPECT_EQ(adapters(g).modules.size(), 4U);
  EXPECT_EQ(gradients(g), 4U);  // LLaVA reads the layer before the last one
  p.lora.vision = false;
  EXPECT_THROW(training(llava(), p), Error);
}

TEST(Lora, FamiliesWithOtherNames) {
  // OPT's output projection is out_proj: of the default targets the others are taken.
  EXPECT_EQ(adapters(training(blip2(), lora_plan())).modules.size(), 3U * 2U);
  EXPECT_EQ(adapters(training(blip2(), lora_plan({"out_proj", "fc1"}))).modules.size(), 2U * 2U);
}

TEST(Lora, UnknownTargetsAreRefusedWithTheNearestName) {
  try {
    training(llava(), lora_plan({"q_proj", "gate_pro"}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.lora.targets");
    EXPECT_NE(e.what_happened.find("gate_pro"), std::string::npos);
    EXPECT_NE(e.hint.find("did you mean gate_proj?"), std::string::npos);
    EXPECT_NE(e.hint.find("down_proj"), std::string::npos);
  }
}

TEST(Lora, FrozenLinearsMultiplyOnceBackward) {
  const Graph g = training(llava(), lora_plan({"q_proj"}));
  constexpr int backward = 1;
  EXPECT_EQ(count(g, backward, "mm", "layers.2.mlp.gate_proj"), 1);
  // Nothing before the first adapter is trained: only the gradient of A in the first layer, that of x too later on.
  EXPECT_EQ(count(g, backward, "mm", "layers.0.self_attn.q_proj.lora_A"), 1);
  EXPECT_EQ(count(g, backward, "mm", "layers.0.self_attn.q_proj.base_layer"), 0);
  EXPECT_EQ(count(g, backward, "mm", "layers.0.self_attn.k_proj"), 0);
  EXPECT_EQ(count(g, backward, "mm", "layers.1.self_attn.q_proj.lora_A"), 2);
  EXPECT_EQ(count(g, backward, "mm", "layers.1.self_attn.q_proj.lora_B"), 2);
  EXPECT_EQ(count(g, backward, "mm", "layers.1.self_attn.q_proj.base_layer"), 1);
  EXPECT_EQ(count(g, backward, "mm", "vision_tower"), 0);
  // An adapter at the end leaves the layers before it alone.
  const Graph last = training(llava(), lora_plan({"layers.2.mlp.down_proj"}));
  EXPECT_EQ(count(last, backward, "mm", "layers.1"), 0);
}

TEST(Lora, SumsInTheTypeOfTheAdapter) {
  const Graph g = training(llava(), lora_plan({"q_proj"}));
  const std::string at = "layers.0.self_attn.q_proj";
  EXPECT_EQ(count(g, 0, "_to_copy", at), 2);  // the input to fp32, the sum back
  Plan p = lora_plan({"q_proj"});
  p.dtype = DType::fp32;
  EXPECT_EQ(count(training(llava(), p), 0, "_to_copy", at), 0);
}

TEST(Lora, DropoutKeepsItsMask) {
  Plan p = lora_plan({"q_proj"});
  EXPECT_EQ(count(training(llava(), p), "native_dropout"), 0);
  p.lora.dropout = true;
  const Graph g = training(llava(), p);
  EXPECT_EQ(count(g, 0, "native_dropout"), 3);
  EXPECT_EQ(count(g, 1, "native_dropout_backward"), 2);  // the first layer's input needs no gradient
}

TEST(Lora, CheckpointingMakesInputsCollectGradients) {
  Plan p = lora_plan();
  p.checkpointing = Checkpointing::full;
  const Graph g = training(llava(), p);
  EXPECT_GT(count(g, 1, "mm", "vision_tower.encoder.layers.0"), 0);  // the tower runs backward too
  EXPECT_EQ(gradients(g), 2 * adapters(g).modules.size());
}

TEST(Lora, CopiedLayersAreWhatEveryLayerRuns) {
  const std::vector<std::string> all{"q_proj", "v_proj"}, some{"v_proj", "layers.1.mlp.up_proj"};
  for (const Checkpointing k : {Checkpointing::off, Checkpointing::full, Checkpointing::selective})
    for (const bool vision : {false, true}) {
      Plan p = lora_plan(vision ? all : some);
      p.checkpointing = k;
      p.lora.vision = vision;
      EXPECT_EQ(rows(training(llava(), p)), rows(training(llava(), p, false)));
    }
}

}  // namespace
}  // namespace vlmest::test::lora_test
