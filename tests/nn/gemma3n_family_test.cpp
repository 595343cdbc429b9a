// SPDX-License-Identifier: Apache-2.0
// Gemma 3n: copies of the hidden states, layers that lend keys, sparse activations, a tower of convolutions, sound.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/gemma3n/family.hpp>
#include <vlmest/family/gemma3n/rule.hpp>

#include "training_support.hpp"

namespace vlmest::gemma3n_family_test {
namespace {

using test::count;
using test::inference;

/// Four layers: sliding, full, sliding, full, of which the last two take the keys of the first two.
Gemma3nFamily family() {
  Gemma3nFamily f;
  f.language.vocab = 300;
  f.language.hidden = 64;
  f.language.layers = 4;
  f.language.heads = 4;
  f.language.kv_heads = 2;
  f.language.head_dim = 16;
  f.language.shared = 2;
  f.language.per_layer = 8;
  f.language.per_layer_vocab = 200;
  f.language.laurel_rank = 4;
  f.language.inner = {96, 96, 96, 96};
  f.language.sliding = {true, false, true, false};
  f.language.sparse = {true, false, false, false};
  f.audio.hidden = 32;
  f.audio.layers = 2;
  f.audio.heads = 2;
  f.audio.channels = {8, 4};
  return f;
}
Vlm tiny(Gemma3nFamily f = family()) {
  Vlm m{.name = "tiny", .type = "gemma3n"};
  m.audio = audio::Gemma3nClips{.tower = f.audio};
  m.family = std::move(f);
  m.image_processor = image_processor::Gemma3n{};
  m.native = {768, 768};
  return m;
}
Plan plan_of(std::int64_t text, int images = 0) {
  Plan p;
  p.text = text;
  p.images = images;
  p.image_height = p.image_width = 768;
  return p;
}
bool any_shape(const Graph& g, const Shape& s) {
  return std::any_of(g.tensors.begin(), g.tensors.end(),
                     [&](const Tensor& t) { return t.alias_of == none && t.role == Role::activation && t.shape == s; });
}

TEST(Gemma3nFamily, EveryLayerSeesOneOfTheCopies) {
  for (const std::int64_t copies : {2, 4}) {
    Gemma3nFamily f = family();
    f.language.copies = copies;
    const Graph g = inference(tiny(f), plan_of(12));
    EXPECT_TRUE(any_shape(g, {copies, 1, 12, 64}));
    EXPECT_TRUE(any_shape(g, {12, 64, copies}));  // what each copy becomes of all
    EXPECT_FALSE(any_shape(g, {copies + 1, 1, 12, 64}));
  }
}

TEST(Gemma3nFamily, OnlySparseLayersMeasureTheirGates) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_EQ(count(g, "std.correction", "layers.0.mlp"), 2);  // prefill and decode
  EXPECT_EQ(count(g, "std.correction", ".mlp"), 2);
}

TEST(Gemma3nFamily, LayersThatShareKeysHaveNoneOfTheirOwn) {
  const Graph g = inference(tiny(), plan_of(12));
  EXPECT_EQ(count(g, "mm", "layers.1.self_attn.k_proj"), 2);
  EXPECT_EQ(count(g, "mm", "layers.3.self_attn.k_proj"), 0);
  EXPECT_EQ(make_cache(family().language).layers.size(), 2U);
}

// A picture of any size is 256 tokens and the four around them.
TEST(Gemma3nFamily, PicturesAreAsManyTokensWhateverTheirSize) {
  for (const ImageSize s : {ImageSize{768, 768}, ImageSize{100, 2000}}) {
    const ImageLayout l = layout(image_processor::Gemma3n{}, s);
    EXPECT_EQ(l.llm_tokens, 256);
    EXPECT_EQ(l.text_overhead, 4);
  }
  EXPECT_TRUE(any_shape(inference(tiny(), plan_of(12, 1)), {1, 2048, 16, 16}));
}

TEST(Gemma3nFamily, ClipsAreFilledUpToTheirTokens) {
  Plan p = plan_of(12);
  p.audio = AudioPlan{.seconds = 1};
  const Graph g = inference(tiny(), p);
  EXPECT_TRUE(any_shape(g, {1, 7, 32}));    // 97 frames: 49, 25 states, every fourth
  EXPECT_TRUE(any_shape(g, {1, 188, 64}));  // behind the embedder
}

TEST(Gemma3nFamily, TrainsThroughEveryPart) {
  Plan p = plan_of(12, 1);
  const Graph g = test::training(tiny(), p);
  EXPECT_GT(count(g, "convolution_backward", "vision_tower"), 200);
  p = plan_of(12);
  p.audio = AudioPlan{.seconds = 1};
  EXPECT_GT(count(test::training(tiny(), p), "flip", "audio_tower"), 0);
}

}  // namespace
}  // namespace vlmest::gemma3n_family_test
