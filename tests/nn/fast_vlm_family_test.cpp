// SPDX-License-Identifier: Apache-2.0
// FastVLM: a tower of convolutions whose branches inference merges, norms over the batch.
#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/fast_vlm/family.hpp>
#include <vlmest/family/fast_vlm/rule.hpp>

#include "training_support.hpp"

namespace vlmest::fast_vlm_family_test {
namespace {

using test::inference;

/// Two stages, of which the second attends; a token of 8 pixels.
FastVlmFamily family(bool fused) {
  FastVlmFamily f;
  f.vision.stages = {{.layers = 2, .dim = 32, .inner = 64, .downsample = false},
                     {.layers = 1, .dim = 64, .inner = 128, .attends = true, .positions = true}};
  f.vision.out = 128;
  f.vision.fused = fused;
  f.projector = {.in = 128, .out = 64};
  f.language = LlamaConfig{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  return f;
}
Vlm tiny(bool fused) {
  Vlm m{.name = "tiny", .type = "fast_vlm"};
  m.family = family(fused);
  m.image_processor = image_processor::FastVlm{.image_size = 32, .patch_size = 8};
  m.native = {32, 32};
  return m;
}
Plan plan_of(int images) {
  Plan p;
  p.text = 16;
  p.images = images;
  p.image_height = 40;
  p.image_width = 64;
  return p;
}
std::int64_t ops(const Graph& g, std::string_view name) {
  return std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.name == name; });
}

// modeling_fast_vlm.py, FastVlmModel.get_image_features: every place of the map is a token.
TEST(FastVlmFamily, EveryPlaceOfTheMapIsAToken) {
  const auto l = layout(image_processor::FastVlm{.image_size = 32, .patch_size = 8}, {40, 64});
  EXPECT_EQ(l.llm_tokens, 16);
  EXPECT_EQ(l.resized, (ImageSize{32, 32}));
  EXPECT_THROW(layout(image_processor::FastVlm{.image_size = 36, .patch_size = 8}, {40, 64}), Error);
}

// fastvit.py, MobileOneBlock.forward: an identity, 1 x 1 and k x k, each with its norm, where nothing is merged.
TEST(FastVlmFamily, BranchesHaveNormsAndMergedOnesDoNot) {
  const Graph merged = inference(tiny(true), plan_of(1)), branched = inference(tiny(false), plan_of(1));
  // one of each block's MLP, and one ahead of attention
  EXPECT_EQ(ops(merged, "native_batch_norm"), 4);
  // beside these: the stem's 2, 2 and 2, each mixer's 3 and 1, the halving's 2 and 2, the last one's 2
  EXPECT_EQ(ops(branched, "native_batch_norm"), 4 + 6 + 2 * 4 + 4 + 2);
  EXPECT_GT(ops(branched, "convolution"), ops(merged, "convolution"));
}

// norm_act.py, BatchNormAct2d.forward: batches are counted in training alone, on the device.
TEST(FastVlmFamily, TrainingCountsBatches) {
  EXPECT_EQ(ops(inference(tiny(true), plan_of(1)), "add_.Tensor"), 0);
  Plan plan = plan_of(1);
  plan.dropout = true;
  const Graph g = test::training(tiny(true), plan);
  EXPECT_GE(ops(g, "add_.Tensor"), 4);
  EXPECT_EQ(ops(g, "native_batch_norm_backward"), 4);
}

// Normalization.cpp, _select_batch_norm_backend.
TEST(FastVlmFamily, NormsInFp32AreCudnns) {
  Plan plan = plan_of(1);
  plan.dtype = DType::fp32;
  const Graph g = inference(tiny(true), plan);
  EXPECT_EQ(ops(g, "cudnn_batch_norm"), 4);
  EXPECT_EQ(ops(g, "native_batch_norm"), 0);
}

TEST(FastVlmFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of(2);
  p.vision_chunk = 1;
  const Graph g = inference(tiny(true), p);
  EXPECT_EQ(ops(g, "native_batch_norm"), 8);
  EXPECT_EQ(ops(g, "masked_scatter"), 1);
}

TEST(FastVlmFamily, CopiedBlocksGiveTheSameStep) {
  for (const bool fused : {true, false})
    for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
      Plan p = plan_of(2);
      p.dropout = true;
      p.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(tiny(fused), p, true)), test::rows(test::training(tiny(fused), p, false)));
    }
}

}  // namespace
}  // namespace vlmest::fast_vlm_family_test
