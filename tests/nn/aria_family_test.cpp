// SPDX-License-Identifier: Apache-2.0
// Aria: squares with padding, queries by the number of patches, experts that run one after the other.
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/aria/family.hpp>
#include <vlmest/family/aria/rule.hpp>

#include "training_support.hpp"

namespace vlmest::aria_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t experts = 4, queries = 5, hidden = 64;

/// Squares of four by four patches.
Vlm tiny() {
  AriaFamily f;
  f.vision = {.hidden = 32, .intermediate = 48, .layers = 3, .heads = 2, .image_size = 56, .patch_size = 14};
  f.language.layers = {
      .vocab = 100, .hidden = hidden, .intermediate = 24, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 16};
  f.language.moe = {.hidden = hidden, .inner = 24, .experts = experts, .top_k = 2, .sequential = true};
  f.projector = {.in = 32, .heads = 2, .out = hidden, .queries = {{16, queries}, {4, 3}}};
  Vlm m{.name = "tiny", .type = "aria"};
  m.family = f;
  m.image_processor = image_processor::Aria{
      .image_size = 56, .min_size = 14, .patch_size = 14, .queries = {{16, queries}, {4, 3}}, .canvases = {{56, 112}}};
  m.native = {56, 56};
  return m;
}
Plan plan_of(ImageSize image, std::int64_t batch = 1) {
  Plan p;
  p.batch = batch;
  p.text = 11;
  p.image_height = image.height;
  p.image_width = image.width;
  return p;
}

/// Rows of the products in the modules of a phase whose path ends so, in order.
std::vector<std::int64_t> rows_in(const Graph& g, std::size_t phase, const std::string& module) {
  std::vector<std::int64_t> r;
  for (NodeId n = g.phases[phase].first; n < g.phases[phase].last; ++n) {
    const Node& node = g.nodes[static_cast<std::size_t>(n)];
    if (std::string_view(node.name) == "mm" && path(g, node.scope).ends_with(module))
      r.push_back(g.tensor(g.outputs(node)[0]).shape[0]);
  }
  return r;
}

// 16 positions go to two of four experts each.
TEST(AriaFamily, ExpertsShareTheRows) {
  const Graph g = inference(tiny(), plan_of({56, 56}));
  for (const char* module : {"layers.0.mlp.experts.fc1", "layers.0.mlp.experts.fc2", "layers.2.mlp.experts.fc1"})
    EXPECT_EQ(rows_in(g, 0, module), (std::vector<std::int64_t>{8, 8, 8, 8})) << module;
  EXPECT_EQ(rows_in(g, 1, "layers.1.mlp.experts.fc1"), (std::vector<std::int64_t>{1, 1, 0, 0}))
      << "one token goes to two";
}

// An expert to which no token goes costs nothing on the GPU, least of all its weights.
TEST(AriaFamily, IdleExpertsRunNoKernel) {
  const Graph g = inference(tiny(), plan_of({56, 56}));
  int kernels = 0, products = 0;
  for (NodeId n = g.phases[1].first; n < g.phases[1].last; ++n) {
    const Node& node = g.node(n);
    if (std::string_view(node.name) != "mm" || path(g, node.scope).find("experts.fc") == std::string::npos) continue;
    ++products;
    kernels += cost(g.op(node)).kernels;
  }
  EXPECT_EQ(products, 3 * 2 * experts);
  EXPECT_EQ(kernels, 3 * 2 * 2) << "of three layers, two products of two experts";
}

TEST(AriaFamily, ARecordedRunsRowsAreTaken) {
  const Vlm vlm = tiny();
  const Plan plan = plan_of({56, 56});
  const RoutedRows routed{[](std::int32_t layer, std::int64_t rows) {
    return layer == 1 ? std::vector<std::int64_t>{0, rows, 0, 0} : std::vector<std::int64_t>{rows - 1, 0, 0, 1};
  }};
  Builder b;
  Context c{b, plan, stack_of(plan)};
  c.routed_rows = &routed;
  build_inference(c, vlm, make_sequences(vlm, plan), 0);
  EXPECT_EQ(rows_in(b.graph, 0, "layers.0.mlp.experts.fc2"), (std::vector<std::int64_t>{31, 0, 0, 1}));
  EXPECT_EQ(rows_in(b.graph, 0, "layers.1.mlp.experts.fc2"), (std::vector<std::int64_t>{0, 32, 0, 0}));
  EXPECT_EQ(rows_in(b.graph, 0, "layers.2.mlp.experts.fc2"), (std::vector<std::int64_t>{31, 0, 0, 1}));
}

// Each expert's gradient is a tensor of all experts' size, with zeros but for its own part.
TEST(AriaFamily, EveryExpertsGradientIsAsLargeAsAllOfThem) {
  const Graph g = test::training(tiny(), plan_of({56, 56}));
  std::int64_t whole = 0, sums = 0;
  for (const Node& n : g.nodes) {
    const std::string_view name = n.name;
    if (name != "select_backward" && name != "add_.Tensor") continue;
    const Shape s = g.tensor(g.outputs(n)[0]).shape;
    if (s.rank() != 3 || s[0] != experts || s[1] * s[2] != hidden * 48) continue;
    ++(name == "select_backward" ? whole : sums);
  }
  EXPECT_EQ(whole, 3 * experts);
  EXPECT_EQ(sums, 3 * (experts - 1));
}

/// Rows of patches that show pixels are positions of the table; others are masked.
TEST(AriaFamily, PaddingIsMasked) {
  const auto masks = [](const Graph& g) {
    return count(g, 0, "bitwise_and.Tensor", "vision_tower");  // create_bidirectional_mask
  };
  const auto positions = [](const Graph& g) {
    for (const Tensor& t : g.tensors)
      if (t.dtype == DType::int64 && std::string_view(t.name) == "index" &&
          path(g, t.scope).ends_with("vision_tower.embeddings"))
        return t.shape[0];
    return std::int64_t{0};
  };
  const Graph whole = inference(tiny(), plan_of({100, 100})), half = inference(tiny(), plan_of({50, 100})),
              least = inference(tiny(), plan_of({1, 100}));
  EXPECT_EQ(masks(whole), 0);
  EXPECT_GT(masks(half), 0);
  EXPECT_EQ(positions(whole), 16);
  EXPECT_EQ(positions(half), 8);
  EXPECT_EQ(positions(least), 4) << "the shorter side is enlarged";
  for (const Graph* g : {&whole, &half}) {
    EXPECT_EQ(count(*g, 0, "baddbmm", "multi_modal_projector"), 1);
    EXPECT_EQ(count(*g, 0, "masked_fill_.Scalar", "multi_modal_projector"), 1) << "queries are masked in any case";
  }
}

TEST(AriaFamily, AnotherLayersStateGoesOn) {
  Vlm last = tiny(), earlier = tiny();
  get<AriaFamily>(earlier.family).feature_layer = 1;
  const auto trained = [](const Vlm& vlm) {
    return count(test::training(vlm, plan_of({56, 56})), 1, "gelu_backward", "vision_tower");
  };
  EXPECT_EQ(count(inference(earlier, plan_of({56, 56})), 0, "gelu", "vision_tower"), 3) << "all layers run";
  EXPECT_EQ(trained(last), 3);
  EXPECT_EQ(trained(earlier), 1);
}

TEST(AriaFamily, PicturesAreCutIntoSquares) {
  const auto layout_of = [](image_processor::Aria r, ImageSize s) { return image_processor::layout(r, s); };
  image_processor::Aria r = get<image_processor::Aria>(tiny().image_processor);
  EXPECT_EQ(layout_of(r, {56, 112}).tiles, 1);
  EXPECT_EQ(layout_of(r, {56, 112}).real_patches, 8);
  r.tiling = image_processor::Tiling::automatic;
  EXPECT_EQ(layout_of(r, {56, 112}).tiles, 2);
  EXPECT_EQ(layout_of(r, {56, 112}).llm_tokens, 2 * queries);
  EXPECT_EQ(layout_of(r, {56, 112}).real_patches, 0) << "all of them";
  r.canvases = {{56, 84}};  // the second part is 56 x 28
  EXPECT_EQ(layout_of(r, {56, 84}).real_patches, 16 + 8);
  r.image_size = 42;
  EXPECT_THROW(layout_of(r, {56, 84}), Error) << "no queries for nine patches";
}

TEST(AriaFamily, PicturesCanStayWholeAndInSmallerSquares) {
  image_processor::Aria r = get<image_processor::Aria>(tiny().image_processor);
  r.tiling = image_processor::Tiling::automatic;
  const std::vector<image_processor::Aria> less = lower(r, image_processor::layout(r, {56, 112}));
  ASSERT_EQ(less.size(), 2u);
  EXPECT_EQ(limit_line(less[0]), "inputs = processor(images=images, text=text, max_image_size=56, split_image=False)");
  EXPECT_EQ(limit_line(less[1]), "inputs = processor(images=images, text=text, max_image_size=28, split_image=False)");
  EXPECT_EQ(image_processor::layout(less[1], {56, 112}).llm_tokens, 3);
  EXPECT_TRUE(lower(less[1], image_processor::layout(less[1], {56, 112})).empty());
}

// The processor writes the placeholders of the largest number of squares for each picture.
TEST(AriaFamily, PicturesInDifferentNumbersOfSquaresAreRefused) {
  Vlm m = tiny();
  image_processor::Aria r = get<image_processor::Aria>(m.image_processor);
  r.tiling = image_processor::Tiling::automatic;
  r.canvases = {{56, 56}, {56, 112}};
  m.image_processor = r;
  Plan p = plan_of({56, 56}, 2);
  EXPECT_NO_THROW(inference(m, p));
  p.more_sizes = {{56, 112}};
  EXPECT_THROW(inference(m, p), Error);
}

TEST(AriaFamily, ChunksOfTheTowerAreJoined) {
  Plan p = plan_of({56, 56}, 5);
  p.vision_chunk = 2;
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(count(g, 0, "convolution", "vision_tower"), 3);
  EXPECT_EQ(count(g, 0, "repeat", "multi_modal_projector"), 3);
  const FeatureCall call = tiny().family.traits().features;
  EXPECT_TRUE(call.tiles);
  EXPECT_EQ(call.line("aria", 2),
            "from transformers.modeling_outputs import BaseModelOutputWithPooling; model.model.get_image_features = "
            "lambda pixel_values, pixel_mask, f=model.model.get_image_features, **k: "
            "BaseModelOutputWithPooling(pooler_output=torch.cat([f(pixel_values=p, pixel_mask=m, **k).pooler_output "
            "for p, m in zip(pixel_values.split(2), pixel_mask.split(2))]))");
}

TEST(AriaFamily, AFusedStackRunsExpertsAtOnce) {
  Plan p = plan_of({50, 100});
  p.runtime = runtime_id("fused");
  const Graph g = inference(tiny(), p);
  EXPECT_EQ(rows_in(g, 0, "experts.fc1"), (std::vector<std::int64_t>{}));
  EXPECT_EQ(count(g, 0, "route", "language_model"), 3);
}

TEST(AriaFamily, CopiedLayersGiveTheSameStep) {
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full}) {
    Plan p = plan_of({50, 100});
    p.checkpointing = how;
    EXPECT_EQ(test::rows(test::training(tiny(), p, true)), test::rows(test::training(tiny(), p, false)));
  }
}

}  // namespace
}  // namespace vlmest::aria_family_test
