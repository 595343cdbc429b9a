// SPDX-License-Identifier: Apache-2.0
// Ovis2: pictures as mixtures of visual words, and marks that stand for rows of the same table.
#include <gtest/gtest.h>

#include <vlmest/family/ovis2/family.hpp>
#include <vlmest/family/ovis2/rule.hpp>

#include "training_support.hpp"

namespace vlmest::ovis2_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t words = 50;

Vlm tiny() {
  const LlamaConfig llama{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  Vlm m{.name = "tiny", .type = "ovis2"};
  m.family = Ovis2Family{.vision = {.hidden = 32,
                                    .intermediate = 48,
                                    .layers = 3,
                                    .heads = 2,
                                    .image_size = 56,
                                    .patch_size = 14,
                                    .words = words,
                                    .stride = 2},
                         .language = llama};
  m.image_processor = image_processor::Ovis2{.image_size = 56, .patch_size = 14, .merge = 2};
  m.native = {56, 56};
  return m;
}
Plan plan_of(ImageSize image, std::int64_t batch = 2) {
  Plan p;
  p.batch = batch;
  p.text = 12;
  p.image_height = image.height;
  p.image_width = image.width;
  return p;
}

TEST(Ovis2Family, TokensAreMixturesOfTheTable) {
  const Graph g = inference(tiny(), plan_of({56, 56}));
  int mixtures = 0;
  for (const Tensor& t : g.tensors)
    mixtures += t.alias_of == none && t.role == Role::activation && t.shape == Shape{2, 4, words};
  EXPECT_EQ(mixtures, 1);
  EXPECT_EQ(count(g, 0, "_softmax", "vision_tower"), 1);
  EXPECT_EQ(count(g, 0, "mm", "visual_embeddings_table"), 1);
  EXPECT_EQ(count(g, 0, "embedding", "visual_embeddings_table"), 1);
  EXPECT_EQ(count(g, 1, "embedding", "visual_embeddings_table"), 0);
}

// A begin, where tiles begin, an end; between columns and between rows only where there are several.
TEST(Ovis2Family, MarksThatStandInThePromptAreReplaced) {
  EXPECT_EQ(count(inference(tiny(), plan_of({56, 56})), 0, "index_put_"), 3);
  EXPECT_EQ(count(inference(tiny(), plan_of({112, 56})), 0, "index_put_"), 4);
  EXPECT_EQ(count(inference(tiny(), plan_of({112, 112})), 0, "index_put_"), 5);
  Plan bare = plan_of({112, 112});
  bare.markers = false;
  EXPECT_EQ(count(inference(tiny(), bare), 0, "index_put_"), 0);
}

TEST(Ovis2Family, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of({112, 112});
  p.vision_chunk = 3;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "convolution", "vision_tower"), 4) << "ten tiles, three at a time";
  EXPECT_EQ(count(g, 0, "mm", "visual_embeddings_table"), 1);
}

TEST(Ovis2Family, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of({56, 56}, 1);
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

}  // namespace
}  // namespace vlmest::ovis2_family_test
