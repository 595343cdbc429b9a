// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/llava_next/family.hpp>
#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/family/llava_onevision/family.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::anyres_family_test {
namespace {

using test::count;
using test::prefill_graph;
using test::prompts;

const ClipVision tiny_clip{
    .hidden = 32, .intermediate = 64, .layers = 3, .heads = 2, .image_size = 28, .patch_size = 14};
const SiglipVision tiny_siglip{
    .hidden = 32, .intermediate = 64, .layers = 3, .heads = 2, .image_size = 28, .patch_size = 14, .head = false};
const LlamaConfig tiny_llama{
    .vocab = 100, .hidden = 48, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 12};

LlavaNextFamily next_family() {
  return {.vision = tiny_clip, .projector = {.in = 32, .out = 48}, .language = tiny_llama};
}
LlavaOnevisionFamily onevision_family() {
  return {.vision = tiny_siglip, .projector = {.in = 32, .out = 48}, .language = tiny_llama};
}

image_processor::LlavaNext next_rule() {
  return {.image_size = 28, .patch_size = 14, .pinpoints = {{28, 56}, {56, 28}, {56, 56}, {84, 28}, {28, 84}}};
}
image_processor::LlavaOnevision onevision_rule() {
  return {.image_size = 28, .patch_size = 14, .max_tiles = 2, .pinpoints = image_processor::square_pinpoints(28, 4)};
}

/// Rows of the features that masked_scatter writes into the embeddings.
std::int64_t scattered_rows(const Graph& g) {
  for (const auto& n : g.nodes)
    if (std::string_view(n.name) == "masked_scatter") return g.tensor(g.inputs(n)[2]).shape[0];
  return -1;
}

const std::vector<std::vector<ImageSize>> mixtures{{{28, 28}},
                                                   {{56, 56}},
                                                   {{200, 30}},
                                                   {{30, 200}},
                                                   {{56, 56}, {100, 33}, {17, 64}},
                                                   {{112, 112}, {110, 90}, {28, 28}}};

TEST(AnyresFamily, FeaturesFillExactlyThePlaceholders) {
  for (const auto& images : mixtures) {
    const auto next = prompts(next_rule(), images), ov = prompts(onevision_rule(), images);
    EXPECT_EQ(scattered_rows(prefill_graph(next_family(), next)), next.image_tokens);
    EXPECT_EQ(scattered_rows(prefill_graph(onevision_family(), ov)), ov.image_tokens);
  }
}

TEST(AnyresFamily, PicturesAreShrunkOneByOne) {
  for (const auto& images : mixtures) {
    const auto s = prompts(onevision_rule(), images);
    int shrunk = 0;
    for (const auto& l : s.images) shrunk += !(l.kept == l.unpadded);
    EXPECT_EQ(count(prefill_graph(onevision_family(), s), "upsample_bilinear2d"), shrunk);
  }
  const auto large = prompts(onevision_rule(), {{112, 112}});
  EXPECT_EQ(count(prefill_graph(onevision_family(), large), "upsample_bilinear2d"), 1);
}

TEST(AnyresFamily, UntiledPicturesOfAPromptGetOneNewlineEach) {
  auto rule = onevision_rule();
  rule.tile_several = false;
  const auto s = prompts(rule, {{56, 56}, {100, 33}, {17, 64}});
  EXPECT_EQ(s.image_tokens, 3 * (4 + 1));
  const Graph g = prefill_graph(onevision_family(), s);
  EXPECT_EQ(scattered_rows(g), s.image_tokens);
  EXPECT_EQ(count(g, "_to_copy"), count(prefill_graph(onevision_family(), Sequences{.text = 7, .seq = 7}), "_to_copy"));
}

TEST(AnyresFamily, TheTowerSeesTheTilesWithoutTheirPadding) {
  const auto s = prompts(next_rule(), {{56, 56}, {28, 84}});
  ASSERT_EQ(s.images[0].tiles, 5);
  ASSERT_EQ(s.images[1].tiles, 4);
  const Graph g = prefill_graph(next_family(), s);
  for (const auto& n : g.nodes)
    if (std::string_view(n.name) == "convolution") {
      EXPECT_EQ(g.tensor(g.outputs(n)[0]).shape[0], 9);
    }
}

TEST(AnyresFamily, AListOfFeatureLayersIsConcatenatedEvenIfItHoldsOne) {
  const auto s = prompts(next_rule(), {{56, 56}});
  auto f = next_family();
  const int plain = count(prefill_graph(f, s), "cat");
  f.layer_list = true;
  EXPECT_EQ(count(prefill_graph(f, s), "cat"), plain + 1);
  f.feature_layers = {0, -1};
  f.projector.in = 64;
  EXPECT_EQ(count(prefill_graph(f, s), "cat"), plain + 1);
}

TEST(AnyresFamily, TextAloneNeedsNoTower) {
  const Sequences s{.text = 9, .seq = 9};
  EXPECT_EQ(count(prefill_graph(next_family(), s), "convolution"), 0);
  EXPECT_EQ(count(prefill_graph(onevision_family(), s), "masked_scatter"), 0);
}

TEST(AnyresFamily, TheFusedProfileBuildsToo) {
  const Plan plan{.runtime = runtime_id("fused")};
  const auto s = prompts(onevision_rule(), {{112, 112}, {30, 90}});
  auto f = onevision_family();
  SiglipVision pooled = tiny_siglip;
  pooled.head = true;
  f.vision = pooled;
  EXPECT_EQ(scattered_rows(prefill_graph(f, s, plan)), s.image_tokens);
}

}  // namespace
}  // namespace vlmest::anyres_family_test
