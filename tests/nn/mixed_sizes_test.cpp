// SPDX-License-Identifier: Apache-2.0
// Images of several sizes in one batch: sequences padded to the longest, tiles to the most, and what attention then
// runs.
#include <gtest/gtest.h>

#include "../conformance/recorded_model.hpp"
#include "family_support.hpp"
#include "training_support.hpp"

namespace vlmest::mixed_sizes_test {
namespace {

Vlm published(const std::string& name) {
  const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/" + name + ".json";
  return json::read_model(conformance::cut_layers(conformance::read_json(path), 2), path);
}

Plan plan_of(std::int64_t batch, std::vector<PixelSize> sizes) {
  Plan p;
  p.batch = batch;
  p.text = 20;
  p.image_height = sizes.front().height;
  p.image_width = sizes.front().width;
  p.more_sizes.assign(sizes.begin() + 1, sizes.end());
  return p;
}

std::int64_t flops(const Graph& g, Part part) {
  std::int64_t n = 0;
  for (const Node& node : g.nodes)
    if (g.scopes[static_cast<std::size_t>(node.scope)].part == part)
      if (const auto* m = std::get_if<Matmul>(&g.op(node))) n += cost(*m).flops.value();
  return n;
}

/// Attention calls of the language model, in a phase, that read a mask, and that do not.
std::pair<int, int> masked_calls(const Graph& g, std::size_t phase) {
  std::pair<int, int> r;
  for (NodeId i = g.phases[phase].first; i < g.phases[phase].last; ++i)
    if (const auto* a = std::get_if<Attention>(&g.op(g.node(i))))
      if (g.scopes[static_cast<std::size_t>(g.node(i).scope)].part == Part::language)
        ++(a->mask > Bytes{} ? r.first : r.second);
  return r;
}

TEST(MixedSizes, AreDealtInTurnAndPaddedToTheLongest) {
  const Vlm v = published("llava-next-mistral-7b");
  const Sequences s = make_sequences(v, plan_of(5, {{336, 336}, {672, 672}}));
  const std::int64_t small = layout(v.image_processor, {336, 336}).llm_tokens,
                     large = layout(v.image_processor, {672, 672}).llm_tokens;
  ASSERT_LT(small, large);
  EXPECT_EQ(s.seq, 20 + large);
  EXPECT_EQ(s.image_tokens, large);
  EXPECT_EQ(s.padding, (std::vector<std::int64_t>{large - small, 0, large - small, 0, large - small}));
  EXPECT_EQ(s.length(0), 20 + small);
  EXPECT_EQ(s.images[0].llm_tokens, small);
  EXPECT_EQ(s.images[3].llm_tokens, large);
  EXPECT_EQ(s.image, (ImageSize{336, 336}));
}

TEST(MixedSizes, TextFillsSequencesOfAGivenLength) {
  Plan p = plan_of(2, {{336, 336}, {672, 672}});
  p.seq = 4000;
  const Sequences s = make_sequences(published("llava-next-mistral-7b"), p);
  EXPECT_EQ(s.seq, 4000);
  EXPECT_FALSE(s.padded());
}

TEST(MixedSizes, OfOneLengthAreNotPadded) {
  // A tower of one fixed size makes the same of every picture.
  const Vlm v = published("llava-1.5-7b");
  const Plan several = plan_of(2, {{100, 300}, {700, 40}}), one = plan_of(2, {{100, 300}});
  EXPECT_FALSE(make_sequences(v, several).padded());
  EXPECT_EQ(test::rows(test::inference(v, several)), test::rows(test::inference(v, one)));
  // And a list of equal sizes is one size.
  const Vlm next = published("llava-next-mistral-7b");
  EXPECT_EQ(test::rows(test::inference(next, plan_of(2, {{336, 336}, {336, 336}}))),
            test::rows(test::inference(next, plan_of(2, {{336, 336}}))));
}

TEST(MixedSizes, NeedASequenceEach) {
  EXPECT_THROW(make_sequences(published("llava-1.5-7b"), plan_of(1, {{10, 10}, {20, 20}})), Error);
}

/// A mask that pads cannot be told by is_causal: it is written out, and attention takes another kernel.
TEST(MixedSizes, PaddingWritesTheMaskOut) {
  const Vlm v = published("llava-next-mistral-7b");
  const Plan mixed = plan_of(2, {{336, 336}, {672, 672}});
  const std::int64_t seq = make_sequences(v, mixed).seq;
  const Graph padded = test::inference(v, mixed), even = test::inference(v, plan_of(2, {{672, 672}}));
  const auto masks = [&](const Graph& g) {
    int n = 0;
    for (const Tensor& t : g.tensors)
      n += t.dtype == DType::boolean && t.alias_of == none && t.shape == Shape{2, 1, seq, seq};
    return n;
  };
  EXPECT_EQ(masks(even), 0);
  EXPECT_GT(masks(padded), 0);
  EXPECT_EQ(masked_calls(even, 0), std::pair(0, 2)) << "two layers";
  EXPECT_EQ(masked_calls(padded, 0), std::pair(2, 0));
  // Decoding too: each step's queries see the mask.
  EXPECT_EQ(masked_calls(padded, 1), std::pair(2, 0));
  EXPECT_EQ(masked_calls(even, 1), std::pair(0, 2));
  Plan flash = mixed;
  flash.attention = AttentionKind::flash;
  EXPECT_THROW(test::inference(v, flash), Error);
  flash.seq = 4000;
  EXPECT_NO_THROW(test::inference(v, flash));
}

TEST(MixedSizes, TilesArePaddedToTheMost) {
  const Vlm v = published("llava-next-mistral-7b");
  Plan p = plan_of(2, {{336, 336}, {672, 672}});
  const Graph g = test::inference(v, p);
  const auto pixels = std::find_if(g.tensors.begin(), g.tensors.end(),
                                   [](const Tensor& t) { return std::string_view(t.name) == "pixel_values"; });
  EXPECT_EQ(pixels->shape, (Shape{2, 5, 3, 336, 336}));
  // The tower sees no padding: the smaller image has three tiles and the whole once more, or fewer.
  const std::int64_t own = layout(v.image_processor, {336, 336}).tiles;
  ASSERT_LT(own, 5);
  EXPECT_EQ(flops(g, Part::vision) * 10, flops(test::inference(v, plan_of(2, {{672, 672}})), Part::vision) * (5 + own));
  // The language model computes every position.
  EXPECT_EQ(flops(g, Part::language), flops(test::inference(v, plan_of(2, {{672, 672}})), Part::language));
}

/// Every family builds, in inference and in training; the tower's work is that of the images.
TEST(MixedSizes, EveryFamily) {
  for (const char* name :
       {"llava-1.5-7b", "llava-next-mistral-7b", "llava-onevision-qwen2-0.5b", "qwen2-vl-2b", "qwen2.5-vl-3b",
        "qwen3-vl-4b", "internvl3-2b", "paligemma-3b-224", "gemma-3-4b", "idefics3-8b", "smolvlm-2.2b", "pixtral-12b",
        "mistral-small-3.1-24b", "aya-vision-8b", "glm-4.1v-9b", "blip2-opt-2.7b", "llama-3.2-11b-vision"}) {
    SCOPED_TRACE(name);
    const Vlm v = published(name);
    const std::vector<PixelSize> sizes{{336, 336}, {672, 1008}};
    Graph mixed = test::inference(v, plan_of(2, sizes));
    const std::int64_t tower = flops(mixed, Part::vision);
    const auto alone = [&](PixelSize s) { return flops(test::inference(v, plan_of(2, {s})), Part::vision) / 2; };
    EXPECT_EQ(tower, alone(sizes[0]) + alone(sizes[1]));
    EXPECT_NO_THROW(test::training(v, plan_of(2, sizes)));
    if (std::string_view(name) == "idefics3-8b" || std::string_view(name) == "smolvlm-2.2b") continue;
    Plan chunks = plan_of(2, sizes);
    chunks.vision_chunk = 1;
    EXPECT_EQ(flops(test::inference(v, chunks), Part::vision), tower);
  }
}

/// Positions of real tokens alone are worked out.
TEST(MixedSizes, MultimodalPositionsLeavePaddingOut) {
  const Vlm v = published("qwen2-vl-2b");
  const Plan p = plan_of(2, {{224, 224}, {448, 448}});
  const Graph g = test::inference(v, p);
  std::vector<std::int64_t> lengths;
  for (const Node& n : g.nodes)
    if (std::string_view(n.name) == "cat" && g.tensor(g.outputs(n)[0]).dtype == DType::int64 &&
        g.tensor(g.outputs(n)[0]).shape.rank() == 2 && g.tensor(g.outputs(n)[0]).shape[0] == 3)
      lengths.push_back(g.tensor(g.outputs(n)[0]).shape[1]);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{20 + 64, 20 + 256}));
}

}  // namespace
}  // namespace vlmest::mixed_sizes_test
