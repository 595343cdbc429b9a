// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/kimi_k25/family.hpp>
#include <vlmest/family/kimi_k25/rule.hpp>

#include "family_support.hpp"
#include "new_decoders_support.hpp"

namespace vlmest::kimi_k25_family_test {
namespace {

using test::count;
using test::inference;
using test::prefill_graph;
using test::prompts;

KimiK25Family family() {
  return {.vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .table_rows = 6, .table_cols = 6},
          .projector = {.in = 32, .merged = 4, .out = 64},
          .language = test::small_deepseek_v3(2, 1),
          .tied = false};
}

const std::vector<std::vector<ImageSize>> mixtures{{{56, 84}}, {{56, 84}, {28, 280}}, {{140, 56}, {60, 60}, {29, 90}}};

TEST(KimiK25Family, ImagesOfAllSizesGoThroughTheTowerAsOneSequence) {
  for (const auto& images : mixtures)
    for (std::int64_t batch : {1, 3}) {
      const auto s = prompts(image_processor::KimiK25{}, images, batch);
      const Graph g = prefill_graph(family(), s);
      const std::int64_t patches = total_patches(s.images), n = static_cast<std::int64_t>(s.images.size());
      EXPECT_EQ(s.image_tokens * batch, patches / 4);
      // One attention for each image in each of the tower's layers.
      EXPECT_EQ(count(g, "_scaled_dot_product_cudnn_attention", "vision_tower"), 3 * n);
      bool pooled = false;
      for (const Tensor& t : g.tensors)
        pooled = pooled || (std::string_view(t.name) == "mean.dim" && t.shape == Shape{patches / 4, 4, 32});
      EXPECT_TRUE(pooled);
    }
}

/// Sixteen entries of the table for each patch, in one kernel.
TEST(KimiK25Family, PositionsAreResampledBicubically) {
  const auto s = prompts(image_processor::KimiK25{}, {{56, 84}});
  const Graph g = prefill_graph(family(), s);
  EXPECT_EQ(count(g, "_embedding_bag", "pos_emb"), 1);
  std::int64_t entries = 0;
  for (const Tensor& t : g.tensors)
    if (std::string_view(t.name) == "offset2bag") entries = t.shape[0];
  EXPECT_EQ(entries, 4 * 6 * 16);
}

TEST(KimiK25Family, TheProjectorIsMadeBehindTheLanguageModel) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  const KimiK25Family f = family();
  make_model(c, f);
  std::vector<std::string> parts;
  for (const Tensor& t : b.graph.tensors) {
    if (t.role != Role::weight || t.alias_of != none) continue;
    const std::string name = path(b.graph, t.scope);
    const std::string part = name.substr(0, name.find('.', 6));
    if (parts.empty() || parts.back() != part) parts.push_back(part);
  }
  EXPECT_EQ(parts,
            (std::vector<std::string>{"model.vision_tower", "model.language_model", "model.mm_projector", "lm_head"}));
}

}  // namespace
}  // namespace vlmest::kimi_k25_family_test
