// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/glm4v/family.hpp>
#include <vlmest/family/glm4v/rule.hpp>

#include "family_support.hpp"

namespace vlmest::glm4v_blip2_family_test {
namespace {

using test::prefill_graph;
using test::prompts;

Glm4vFamily glm_family() {
  return {.vision = {.hidden = 32,
                     .intermediate = 80,
                     .layers = 3,
                     .heads = 4,
                     .image_size = 56,
                     .patch_size = 14,
                     .out_hidden = 64},
          .language = {.vocab = 100,
                       .hidden = 64,
                       .intermediate = 96,
                       .layers = 3,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 16,
                       .rotary_dim = 8,
                       .sections = {2, 1, 1}}};
}
Blip2Family blip_family() {
  return {
      .vision = {.hidden = 32, .intermediate = 64, .layers = 2, .heads = 2, .image_size = 28},
      .qformer = {.hidden = 32, .intermediate = 48, .layers = 5, .heads = 2, .cross_every = 2, .encoder_hidden = 32},
      .language = {.vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .positions = 64},
      .query_tokens = 3};
}

std::vector<const Node*> nodes(const Graph& g, std::string_view name) {
  std::vector<const Node*> r;
  for (const auto& n : g.nodes)
    if (name == n.name) r.push_back(&n);
  return r;
}
const Tensor& output(const Graph& g, const Node& n) { return g.tensor(g.outputs(n)[0]); }

const std::vector<std::vector<ImageSize>> mixtures{{{56, 84}}, {{56, 84}, {28, 280}}, {{140, 56}, {60, 60}, {29, 90}}};

TEST(Glm4vFamily, ImagesOfAllSizesGoThroughTheTowerAsOneSequence) {
  const ImageProcessor rule = image_processor::Glm4v{.budget = {784, 11760000}};
  for (const auto& images : mixtures)
    for (std::int64_t batch : {1, 3}) {
      const auto s = prompts(rule, images, batch);
      const Graph g = prefill_graph(glm_family(), s);
      const std::int64_t patches = total_patches(s.images), n = static_cast<std::int64_t>(s.images.size());
      const auto sampled = nodes(g, "grid_sampler_2d");
      ASSERT_EQ(sampled.size(), 1u);
      EXPECT_EQ(output(g, *sampled[0]).shape, (Shape{1, 32, patches, 1}));
      const auto convolutions = nodes(g, "convolution");
      ASSERT_EQ(convolutions.size(), 2u);
      EXPECT_EQ(output(g, *convolutions[1]).shape, (Shape{patches / 4, 64, 1, 1}));
      EXPECT_EQ(s.image_tokens * batch, patches / 4);
      // Each image has an attention of its own in each of the three tower layers.
      EXPECT_EQ(static_cast<std::int64_t>(nodes(g, "_scaled_dot_product_cudnn_attention").size()), 3 * n + 3);
    }
}

TEST(Glm4vFamily, TheDownsamplingWeightIsCopiedToChannelsLast) {
  const auto s = prompts(image_processor::Glm4v{.budget = {784, 11760000}}, {{56, 84}});
  const Graph g = prefill_graph(glm_family(), s);
  const Node& n = *nodes(g, "convolution")[1];
  ASSERT_FALSE(g.scratch_of(n).empty());
  EXPECT_EQ(g.scratch_of(n)[0], Bytes(64 * 32 * 4 * 2));
}

TEST(Glm4vFamily, OnlyARotaryPartOfEachHeadTurns) {
  const auto s = prompts(image_processor::Glm4v{.budget = {784, 11760000}}, {{56, 84}});
  auto family = glm_family();
  const auto widths = [&] {
    std::vector<std::int64_t> r;
    const Graph g = prefill_graph(family, s);
    for (const Node* n : nodes(g, "stack"))
      if (g.tensor(g.outputs(*n)[0]).shape.rank() == 5) r.push_back(output(g, *n).shape[3] * 2);
    return r;
  };
  const auto part = widths();
  EXPECT_EQ(part, std::vector<std::int64_t>(6, 8));
  family.language.rotary_dim = 16;
  family.language.sections = {2, 3, 3};
  EXPECT_EQ(widths(), std::vector<std::int64_t>(6, 16));
}

TEST(Blip2Family, EverySecondQFormerLayerReadsTheImage) {
  const auto s = prompts(image_processor::Blip2{.image_size = 28, .query_tokens = 3}, {{40, 30}, {28, 28}}, 2);
  const Graph g = prefill_graph(blip_family(), s);
  int own = 0, cross = 0;
  for (const Node* n : nodes(g, "_scaled_dot_product_cudnn_attention")) {
    const auto& a = std::get<Attention>(g.op(*n));
    own += a.q_len == 3 && a.kv_len == 3 && a.batch == 4;
    cross += a.q_len == 3 && a.kv_len == 5 && a.batch == 4;
  }
  EXPECT_EQ(own, 5);
  EXPECT_EQ(cross, 3);
}

TEST(Blip2Family, DropoutRunsInTrainingModeAlone) {
  const auto s = prompts(image_processor::Blip2{.image_size = 28, .query_tokens = 3}, {{28, 28}});
  EXPECT_TRUE(nodes(prefill_graph(blip_family(), s), "native_dropout").empty());
  // Queries, two results in each Q-Former layer and one more with cross-attention, two in each layer of OPT.
  const Graph g = prefill_graph(blip_family(), s, {.dropout = true});
  EXPECT_EQ(nodes(g, "native_dropout").size(), 1u + 5 * 2 + 3 + 2 * 2);
  EXPECT_EQ(
      nodes(prefill_graph(blip_family(), s, {.attention = AttentionKind::eager, .dropout = true}), "native_dropout")
          .size(),
      1u + 5 * 2 + 3 + 2 * 2 + 5 + 3);
}

TEST(Blip2Family, TheQFormerStaysFp32InAnFp16Model) {
  const auto s = prompts(image_processor::Blip2{.image_size = 28, .query_tokens = 3}, {{28, 28}});
  for (DType t : {DType::bf16, DType::fp16, DType::fp32}) {
    const Graph g = prefill_graph(blip_family(), s, {.dtype = t});
    Bytes wide{};
    Elements in_qformer{};
    for (const auto& w : g.tensors) {
      if (w.role != Role::weight || w.alias_of != none) continue;
      const bool q = path(g, w.scope).starts_with("qformer") || std::string_view(w.name) == "query_tokens";
      if (q) in_qformer += w.storage;
      if (w.dtype == DType::fp32) wide += requested_bytes(w);
      EXPECT_EQ(w.dtype, t == DType::fp16 && q ? DType::fp32 : t) << path(g, w.scope) << " " << w.name;
    }
    if (t == DType::fp16) {
      EXPECT_EQ(wide, size_of(in_qformer, DType::fp32));
    }
  }
}

TEST(Blip2Family, WhatTransformersRefusesIsRefused) {
  const auto s = prompts(image_processor::Blip2{.image_size = 28, .query_tokens = 3}, {{28, 28}});
  EXPECT_THROW(prefill_graph(blip_family(), s, {.attention = AttentionKind::flash}), Error);
  EXPECT_THROW(prefill_graph(blip_family(), Sequences{.text = 9, .seq = 9}), Error);
}

}  // namespace
}  // namespace vlmest::glm4v_blip2_family_test
