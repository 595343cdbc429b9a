// SPDX-License-Identifier: Apache-2.0
// ViP-LLaVA: hidden states of several layers side by side, normed, then LLaVA's projector.
#include <gtest/gtest.h>

#include <vlmest/family/llava/family.hpp>
#include <vlmest/family/vipllava/family.hpp>

#include "training_support.hpp"

namespace vlmest::vipllava_family_test {
namespace {

using test::count;

Vlm vip(std::vector<std::int64_t> layers, bool list = true) {
  Vlm m = test::llava();
  const auto& of = get<LlavaFamily>(m.family);
  VipLlavaFamily f{.vision = of.vision, .projector = of.projector, .language = of.language};
  f.projector.in = 32 * static_cast<std::int64_t>(layers.size());
  f.feature_layers = std::move(layers);
  f.layer_list = list;
  m.family = f;
  return m;
}

Plan plan_of(std::int64_t chunk = 0) {
  Plan p;
  p.batch = 2;
  p.images = 2;
  p.text = 12;
  p.vision_chunk = chunk;
  return p;
}

/// Shapes of what ops called `name` make in modules whose path contains `within`.
std::vector<Shape> results(const Graph& g, std::string_view name, std::string_view within) {
  std::vector<Shape> r;
  for (const auto& n : g.nodes)
    if (name == n.name && path(g, n.scope).find(within) != std::string::npos)
      r.push_back(g.tensor(g.outputs(n)[0]).shape);
  return r;
}

/// Four patches of each of four images, without the class token.
TEST(VipLlava, LayersLieSideBySideAndAreNormed) {
  const Graph g = test::inference(vip({-2, -1, 0}), plan_of());
  const auto norms = results(g, "native_layer_norm", "multi_modal_projector.projector_layernorm");
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_EQ(norms[0], (Shape{4, 4, 96}));
  const auto joined = results(g, "cat", "model");
  EXPECT_EQ(std::count(joined.begin(), joined.end(), Shape{4, 4, 96}), 1);
  EXPECT_EQ(count(g, 0, "addmm", "multi_modal_projector.linear_1"), 1);
  EXPECT_EQ(count(g, 0, "addmm", "multi_modal_projector.linear_2"), 1);
}

TEST(VipLlava, OneLayerAloneIsNotCopied) {
  const auto joined = [](const Vlm& v) { return results(test::inference(v, plan_of()), "cat", "model"); };
  const auto list = joined(vip({-2})), number = joined(vip({-2}, false));
  EXPECT_EQ(list.size(), number.size() + 1);
}

/// A state that is read twice has a gradient before the layer behind it runs backward.
TEST(VipLlava, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective})
    for (const auto& layers : {std::vector<std::int64_t>{-2, 0}, {-2}, {-1, -2, -3}, {1, 2}}) {
      Plan plan = plan_of();
      plan.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(vip(layers), plan, true)),
                test::rows(test::training(vip(layers), plan, false)));
    }
}

TEST(VipLlava, ChunksOfTheTowerAreJoined) {
  const Graph whole = test::inference(vip({-2, 0}), plan_of()), chunks = test::inference(vip({-2, 0}), plan_of(1));
  EXPECT_EQ(count(whole, "convolution", "vision_tower"), 1);
  EXPECT_EQ(count(chunks, "convolution", "vision_tower"), 4);
}

}  // namespace
}  // namespace vlmest::vipllava_family_test
