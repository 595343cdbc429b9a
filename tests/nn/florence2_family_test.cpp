// SPDX-License-Identifier: Apache-2.0
// Florence-2: DaViT's windows and channel groups, and BART's two stacks before one table of words.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/florence2/family.hpp>
#include <vlmest/family/florence2/rule.hpp>

#include "family_support.hpp"
#include "training_support.hpp"

namespace vlmest::florence2_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t encoder_layers = 3, decoder_layers = 2, hidden = 64;

Vlm tiny(bool dropout = false) {
  Florence2Family f;
  f.vision = {.stages = {{.depth = 1, .width = 32, .heads = 2, .groups = 2},
                         {.depth = 2,
                          .width = 64,
                          .heads = 4,
                          .groups = 4,
                          .kernel = 3,
                          .stride = 2,
                          .padding = 1,
                          .norm_first = true}},
              .window = 7,
              .image_size = 96,
              .drop_path = dropout ? 0.1 : 0.0};
  f.projector = {.in = 64, .out = hidden, .positions = 20, .times = 10};
  f.language = {.vocab = 100,
                .hidden = hidden,
                .encoder_layers = encoder_layers,
                .decoder_layers = decoder_layers,
                .encoder_intermediate = 96,
                .decoder_intermediate = 80,
                .encoder_heads = 4,
                .decoder_heads = 2,
                .dropout = dropout};
  Vlm m{.name = "tiny", .type = "florence2"};
  m.family = f;
  m.image_processor = image_processor::Florence2{.image_size = 96, .map = {12, 12}};
  m.native = {96, 96};
  return m;
}
Plan plan(std::int64_t text = 12, std::int64_t batch = 2) { return {.batch = batch, .text = text}; }

InferenceCaches caches(const Vlm& v, const Plan& p, std::int64_t steps) {
  Builder b;
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(v, p);
  return build_inference(c, v, s, s.seq + steps);
}
Bytes sum(const std::vector<CacheEntry>& entries, bool fixed) {
  Bytes r{};
  for (const auto& e : entries)
    if (e.fixed == fixed) r += e.bytes;
  return r;
}
/// Keys and values of so many tokens in one layer's bf16 cache.
Bytes entry(std::int64_t tokens) { return Bytes(2 * 2 * tokens * hidden * 2); }

TEST(Florence2Family, APictureIsItsLastMapAndTheMeanOfIt) {
  EXPECT_EQ(make_sequences(tiny(), plan()).seq, 12 + 144 + 1);
  EXPECT_EQ(davit_side({.stages = {{}, {.kernel = 3, .stride = 2, .padding = 1}}}, 768), 96);
}

TEST(Florence2Family, TheDecodersCacheGrowsAndTheEncodersDoesNot) {
  for (const std::int64_t steps : {1, 2, 9}) {
    const InferenceCaches c = caches(tiny(), plan(), steps);
    EXPECT_EQ(sum(c.prefill, false), entry(1) * decoder_layers);
    EXPECT_EQ(sum(c.decode, false), entry(1 + steps) * decoder_layers);
    EXPECT_EQ(sum(c.prefill, true), entry(12 + 145) * decoder_layers);
    EXPECT_EQ(sum(c.decode, true), sum(c.prefill, true));
  }
}

TEST(Florence2Family, ADecodeStepRunsTheDecoderAlone) {
  const Graph g = inference(tiny(), plan(), 3);
  EXPECT_EQ(count(g, 0, "addmm", "language_model.encoder"), 6 * encoder_layers);
  EXPECT_EQ(count(g, 1, "addmm", "language_model.encoder"), 0);
  EXPECT_EQ(count(g, 1, "convolution"), 0);
  // Queries, keys, values and the output of one attention, queries and the output of the other, two of the MLP.
  EXPECT_EQ(count(g, 1, "addmm", "language_model.decoder"), (4 + 2 + 2) * decoder_layers);
}

// Two maps of 24 and 12 pixels a side are filled up to windows of 7; each block mixes twice by a convolution.
TEST(Florence2Family, WindowsAreFilledUpAndConvolutionsMixChannelsOneByOne) {
  const Graph g = inference(tiny(), plan());
  EXPECT_EQ(count(g, 0, "constant_pad_nd", "vision_tower"), 3);
  EXPECT_EQ(count(g, 0, "convolution", "vision_tower"), 2 + 3 * 4);
  int windows = 0, groups = 0;
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none || t.role != Role::activation) continue;
    windows += t.shape == Shape{2 * 16 * 49, 96} || t.shape == Shape{2 * 4 * 49, 192};
    groups += t.shape == Shape{2 * 576, 96} || t.shape == Shape{2 * 144, 192};
  }
  EXPECT_EQ(windows, 3);
  EXPECT_EQ(groups, 3);
}

TEST(Florence2Family, EveryBranchButTheFirstMayBeDropped) {
  const auto draws = [](const Vlm& v) {
    Builder b;
    const Plan p = plan();
    Context c{b, p, stack_of(p)};
    build_training(c, v, make_sequences(v, p));
    int n = 0;
    for (const Node& node : b.graph.nodes)
      n += path(b.graph, node.scope).find("drop_path") != std::string::npos && std::string_view(node.name) == "rand";
    return n;
  };
  EXPECT_EQ(draws(tiny(true)), 2 * 2 * 3 - 2);
  EXPECT_EQ(draws(tiny(false)), 0);
}

TEST(Florence2Family, CopiedLayersGiveTheSameStep) {
  for (const bool dropout : {false, true})
    for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
      Plan p = plan();
      p.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(tiny(dropout), p, true)),
                test::rows(test::training(tiny(dropout), p, false)));
    }
}

}  // namespace
}  // namespace vlmest::florence2_family_test
