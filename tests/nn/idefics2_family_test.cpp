// SPDX-License-Identifier: Apache-2.0
// Idefics2: pictures padded to the largest of the batch, quarters beside the whole, latents that read features.
#include <algorithm>

#include <gtest/gtest.h>

#include <vlmest/family/idefics2/family.hpp>
#include <vlmest/family/idefics2/rule.hpp>

#include "training_support.hpp"

namespace vlmest::idefics2_family_test {
namespace {

using image_processor::Tiling;
using test::count;
using test::inference;

constexpr std::int64_t latents = 5;

Vlm tiny(Tiling tiling = Tiling::never) {
  const LlamaConfig llama{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  Vlm m{.name = "tiny", .type = "idefics2"};
  m.family = Idefics2Family{
      .vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 56, .patch_size = 14},
      .projector = {.in = 32,
                    .intermediate = 96,
                    .out = 64,
                    .latents = latents,
                    .depth = 3,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 8},
      .language = llama};
  m.image_processor = image_processor::Idefics2{
      .patch_size = 14, .latents = latents, .shortest_edge = 28, .longest_edge = 56, .tiling = tiling};
  m.native = {56, 56};
  return m;
}
Plan plan_of(std::vector<PixelSize> sizes, std::int64_t batch = 2) {
  Plan p;
  p.batch = batch;
  p.text = 12;
  p.image_height = sizes.front().height;
  p.image_width = sizes.front().width;
  p.more_sizes.assign(sizes.begin() + 1, sizes.end());
  return p;
}
const Tensor& input(const Graph& g, std::string_view name) {
  return *std::find_if(g.tensors.begin(), g.tensors.end(),
                       [&](const Tensor& t) { return t.role == Role::input && t.name == name; });
}
/// Calls of attention within a module that read a mask.
int masked(const Graph& g, std::string_view within) {
  int n = 0;
  for (const Node& node : g.nodes)
    if (const auto* a = std::get_if<Attention>(&g.op(node)))
      n += a->mask > Bytes{} && path(g, node.scope).find(within) != std::string::npos;
  return n;
}

TEST(Idefics2Family, APictureCostsAsManyTokensAsThereAreLatents) {
  const Vlm v = tiny();
  for (const ImageSize s : {ImageSize{28, 28}, ImageSize{56, 42}, ImageSize{5, 5000}}) {
    const ImageLayout l = layout(v.image_processor, s);
    EXPECT_EQ((std::array{l.llm_tokens, l.text_overhead, l.tiles}), (std::array<std::int64_t, 3>{latents, 2, 1}));
    EXPECT_EQ(l.real_patches, l.patches.count());
  }
  EXPECT_EQ(layout(v.image_processor, {5, 5000}).resized, (ImageSize{28, 56}));
  const ImageLayout quarters = layout(tiny(Tiling::automatic).image_processor, {56, 56});
  EXPECT_EQ(quarters.llm_tokens, 5 * latents);
  EXPECT_EQ(quarters.text_overhead, 6) << "neighbours share a marker";
  EXPECT_EQ(quarters.patches, (Grid{4, 4}));
  EXPECT_EQ(quarters.real_patches, 4 * 4 + 16);
  EXPECT_THROW(layout(tiny(Tiling::automatic).image_processor, {1, 40}), Error);
}

// Pixels and their mask are as high as the highest picture and as wide as the widest.
TEST(Idefics2Family, PicturesArePaddedToTheLargest) {
  const Graph g = inference(tiny(), plan_of({{56, 28}, {28, 42}}));
  EXPECT_EQ(input(g, "pixel_values").shape, (Shape{2, 1, 3, 56, 42}));
  EXPECT_EQ(input(g, "pixel_attention_mask").shape, (Shape{2, 1, 56, 42}));
  EXPECT_EQ(input(g, "pixel_attention_mask").dtype, DType::bf16);
  // 4 x 2 and 2 x 3 of 4 x 3 patches find their place.
  int placed = 0;
  for (const Tensor& t : g.tensors) placed += t.shape == Shape{8 + 6} && t.dtype == DType::int64;
  EXPECT_GT(placed, 0);
}

TEST(Idefics2Family, AttentionIsMaskedWherePatchesArePadding) {
  for (const bool mixed : {false, true}) {
    const Graph g = inference(
        tiny(), plan_of(mixed ? std::vector<PixelSize>{{56, 28}, {28, 42}} : std::vector<PixelSize>{{56, 28}}));
    EXPECT_EQ(masked(g, "vision_model"), mixed ? 3 : 0);
    EXPECT_EQ(masked(g, "perceiver_resampler"), mixed ? 3 : 0);
    // Shared key and value heads are copied for the queries only where there is a mask.
    EXPECT_EQ(count(g, 0, "clone", "perceiver_resampler") > 0, mixed);
  }
  // Less than a patch of padding hides nothing.
  EXPECT_EQ(masked(inference(tiny(), plan_of({{56, 56}, {56, 44}})), "vision_model"), 3);
  EXPECT_EQ(masked(inference(tiny(), plan_of({{44, 44}, {43, 42}})), "vision_model"), 0);
}

TEST(Idefics2Family, FlashAttentionOverPaddingIsRefused) {
  Plan p = plan_of({{56, 28}, {28, 42}});
  p.attention = AttentionKind::flash;
  EXPECT_THROW(inference(tiny(), p), Error);
  EXPECT_NO_THROW(inference(tiny(), [&] {
    Plan one = plan_of({{56, 28}});
    one.attention = AttentionKind::flash;
    return one;
  }()));
}

TEST(Idefics2Family, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of({{56, 56}});
  p.vision_chunk = 4;
  const Graph g = inference(tiny(Tiling::automatic), [&] {
    Plan even = p;
    even.image_height = even.image_width = 28;  // quarters and the whole become one size
    return even;
  }());
  EXPECT_EQ(count(g, 0, "convolution", "vision_model"), 3) << "ten pieces, four at a time";
  // Quarters of 28 beside a whole of 56: which of them a call holds decides what is padding.
  EXPECT_THROW(inference(tiny(Tiling::automatic), p), Error);
  // Whole pictures of two sizes are known one by one.
  p = plan_of({{56, 28}, {28, 42}});
  p.vision_chunk = 1;
  const Graph ones = inference(tiny(), p);
  EXPECT_EQ(count(ones, 0, "convolution", "vision_model"), 2);
  EXPECT_EQ(masked(ones, "vision_model"), 2 * 3);
}

TEST(Idefics2Family, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full})
    for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager})
      for (const bool mixed : {false, true}) {
        Plan p = plan_of(mixed ? std::vector<PixelSize>{{56, 28}, {28, 42}} : std::vector<PixelSize>{{56, 28}});
        p.checkpointing = how;
        p.attention = attention;
        EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
      }
}

}  // namespace
}  // namespace vlmest::idefics2_family_test
