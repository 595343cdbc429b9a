// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/internvl/family.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::internvl_family_test {
namespace {

using test::count;
using test::inference;

InternVitVision tiny_vit() {
  return {.hidden = 32, .intermediate = 64, .layers = 3, .heads = 2, .image_size = 56, .patch_size = 14};
}

Vlm tiny(const InternVitVision& vision, std::int64_t feature_layer = -1) {
  const LlamaConfig llama{
      .vocab = 100, .hidden = 48, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 12};
  Vlm v{.name = "tiny",
        .type = "internvl",
        .family = InternVlFamily{.vision = vision, .language = llama, .feature_layer = feature_layer}};
  v.image_processor = image_processor::InternVl{.image_size = vision.image_size, .patch_size = vision.patch_size};
  v.native = {vision.image_size, vision.image_size};
  return v;
}

TEST(InternVlFamily, FoldedFeaturesFillExactlyThePlaceholders) {
  for (const ImageSize size : {ImageSize{56, 56}, ImageSize{112, 112}, ImageSize{60, 170}}) {
    const Plan plan{.batch = 2, .images = 2, .image_height = size.height, .image_width = size.width, .text = 9};
    const Vlm v = tiny(tiny_vit());
    const Graph g = inference(v, plan);
    const Sequences s = make_sequences(v, plan);
    ASSERT_EQ(count(g, "masked_scatter"), 1);
    for (const auto& n : g.nodes) {
      if (std::string_view(n.name) != "masked_scatter") continue;
      EXPECT_EQ(numel(g.tensor(g.inputs(n)[2]).shape), Elements(plan.batch * s.image_tokens * 48));
    }
  }
}

TEST(InternVlFamily, TextAloneRunsNoTowerAndNoScatter) {
  const Graph g = inference(tiny(tiny_vit()), {.images = 0, .text = 9});
  EXPECT_EQ(count(g, "convolution"), 0);
  EXPECT_EQ(count(g, "masked_scatter"), 0);
  EXPECT_EQ(count(g, "addmm", "projector"), 0);
  EXPECT_GT(count(g, "mm", "lm_head"), 0);
}

TEST(InternVlFamily, NormTypeAndQueryNormsChooseTheTowersNorms) {
  InternVitVision vit = tiny_vit();
  const Plan plan{.text = 9};
  EXPECT_EQ(count(inference(tiny(vit), plan), "native_layer_norm", "vision_tower"), 2 * 3);
  EXPECT_EQ(count(inference(tiny(vit), plan), "rsqrt", "vision_tower"), 0);
  vit.rms_norm = vit.qk_norm = true;
  EXPECT_EQ(count(inference(tiny(vit), plan), "native_layer_norm", "vision_tower"), 0);
  EXPECT_EQ(count(inference(tiny(vit), plan), "rsqrt", "vision_tower"), 4 * 3);
  vit.mean_pooling = false;
  EXPECT_EQ(count(inference(tiny(vit), plan), "native_layer_norm", "vision_tower"), 1);
}

TEST(InternVlFamily, EagerScoresOfTheTowerAreNotCastUp) {
  const Graph g = inference(tiny(tiny_vit()), {.text = 9, .attention = AttentionKind::eager});
  for (const auto& n : g.nodes) {
    if (std::string_view(n.name) != "_softmax") continue;
    const bool tower = path(g, n.scope).find("vision_tower") != std::string::npos;
    EXPECT_EQ(g.tensor(g.outputs(n)[0]).dtype, tower ? DType::bf16 : DType::fp32);
  }
}

/// Tensors that are alive when the projector begins.
std::int64_t held_at_projector(const Graph& g) {
  NodeId at = 0;
  while (path(g, g.node(at).scope).find("multi_modal_projector") == std::string::npos) ++at;
  std::int64_t n = 0;
  for (const auto& t : g.tensors) n += t.alias_of == none && t.role == Role::activation && t.born < at && t.dies >= at;
  return n;
}

TEST(InternVlFamily, AnEarlierFeatureLayerKeepsEveryHiddenState) {
  const Plan plan{.text = 9};
  const auto last = held_at_projector(inference(tiny(tiny_vit()), plan)),
             earlier = held_at_projector(inference(tiny(tiny_vit(), -2), plan));
  EXPECT_EQ(earlier - last, 3);  // of four states, the last one is held in both
}

TEST(InternVitTower, PositionsAreResizedForOtherPictureSizes) {
  for (const ImageSize size : {ImageSize{56, 56}, ImageSize{70, 70}, ImageSize{28, 112}}) {
    const InternVitVision vit = tiny_vit();
    Builder b;
    const Plan plan;
    {
      Context c{b, plan, stack_of(plan)};
      const InternVitTower tower = make_tower(c, vit);
      const Value pixels = b.existing("pixel_values", Role::input, DType::bf16, {1, 3, size.height, size.width});
      const TowerOutput out = forward(c, tower, {pixels, {}, false});
      EXPECT_EQ(out.last.shape(), (Shape{1, 1 + (size.height / 14) * (size.width / 14), 32}));
    }
    // 28 x 112 has as many patches as 56 x 56 but is no square.
    const bool stored = size.height == 56 && size.width == 56;
    EXPECT_EQ(count(b.graph, "upsample_bicubic2d"), stored ? 0 : 1);
  }
}

}  // namespace
}  // namespace vlmest::internvl_family_test
