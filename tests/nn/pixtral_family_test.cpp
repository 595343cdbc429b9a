// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/family/mistral3/family.hpp>
#include <vlmest/family/mistral3/rule.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::pixtral_family_test {
namespace {

constexpr PixtralVision small{.hidden = 64, .intermediate = 128, .layers = 3, .heads = 4, .image_size = 96};

/// A tower run over 32x48 and 16x80 pixels: 6 and 5 patches of a canvas of 2 by 5.
struct TowerRun {
  Builder b;
  Plan plan;
  Context c{b, plan, stack_of(plan)};
  TowerOutput out;

  explicit TowerRun(AttentionKind attention = AttentionKind::sdpa, Runtime runtime = {}, bool sizes_on_gpu = true) {
    plan.attention = attention;
    plan.runtime = runtime;
    const image_processor::Pixtral rule{.patch_size = 16, .longest_edge = 96};
    const std::vector<ImageLayout> images{image_processor::layout(rule, {32, 48}),
                                          image_processor::layout(rule, {16, 80})};
    const PixtralTower tower = make_tower(c, small);
    TowerInput in{.images = images, .keep_hidden_states = true};
    in.pixels = b.existing("pixel_values", Role::input, c.dtype(), pixel_shape(small, images));
    if (sizes_on_gpu) in.image_sizes = b.existing("image_sizes", Role::input, DType::int64, {2, 2});
    out = forward(c, tower, in);
  }
  std::vector<Shape> results(std::string_view name) const {
    std::vector<Shape> r;
    for (const auto& n : b.graph.nodes)
      if (n.name == name) r.push_back(n.outputs > 0 ? b.graph.tensor(b.graph.outputs(n)[0]).shape : Shape{});
    return r;
  }
  std::int64_t attention_flops() const {
    std::int64_t f = 0;
    for (const auto& n : b.graph.nodes)
      if (const auto* a = std::get_if<Attention>(&b.graph.op(n))) f += cost(*a).flops.value();
    return f;
  }
};

TEST(Pixtral, PublishedParameterCounts) {
  for (const auto& [patch, count] : {std::pair<std::int64_t, std::int64_t>{16, 403489792}, {14, 403305472}}) {
    Builder b;
    const Plan plan;
    Context c{b, plan, stack_of(plan)};
    const PixtralVision config{.patch_size = patch};
    make_tower(c, config);
    std::int64_t n = 0;
    for (const auto& t : b.graph.tensors)
      if (t.role == Role::weight) n += numel(t.shape).value();
    EXPECT_EQ(n, count);
  }
}

TEST(Pixtral, PacksImagesOfDifferentSizes) {
  const TowerRun r;
  EXPECT_EQ(r.out.last.shape(), (Shape{1, 11, 64}));
  EXPECT_EQ(r.out.hidden_states.size(), 4u);
  EXPECT_EQ(r.results("convolution"), (std::vector<Shape>{{2, 64, 2, 5}}));
  // One block of the mask for each image, none across.
  EXPECT_EQ(r.results("full"), (std::vector<Shape>{{11, 11}}));
  EXPECT_EQ(r.results("fill_.Tensor"), (std::vector<Shape>{{6, 6}, {5, 5}}));
  // The first crop leaves gaps in the canvas and is copied, as its index grids are; the second is a whole row.
  EXPECT_EQ(r.results("clone"), (std::vector<Shape>{{64, 2, 3}, {2, 3}, {2, 3}}));
  // Height and width of each image are read by the host.
  EXPECT_EQ(r.results("_local_scalar_dense").size(), 4u);
  EXPECT_EQ(TowerRun(AttentionKind::sdpa, runtime_id("transformers"), false).results("_local_scalar_dense").size(), 0u);
}

TEST(Pixtral, FlashKeepsImagesApartByLength) {
  const std::int64_t per_pair = 2 * 2 * 64, layers = 3;
  EXPECT_EQ(TowerRun().attention_flops(), layers * per_pair * 11 * 11);
  for (auto runtime : runtimes) {
    const TowerRun r(AttentionKind::flash, runtime);
    EXPECT_EQ(r.attention_flops(), layers * per_pair * (6 * 6 + 5 * 5));
    EXPECT_TRUE(r.results("full").empty());
    EXPECT_EQ(r.out.last.shape(), (Shape{1, 11, 64}));
  }
}

TEST(Mistral3, MergesEachImageAlone) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  const image_processor::Mistral3 rule{.patch_size = 16, .longest_edge = 192, .merge = 2};
  const std::vector<ImageLayout> images{image_processor::layout(rule, {64, 96}),
                                        image_processor::layout(rule, {32, 160})};
  const Mistral3Projector config{.in = 64, .out = 96};
  const Mistral3Merger merger = make_projector(c, config);
  const Value sizes = b.existing("image_sizes", Role::input, DType::int64, {2, 2});
  const Value features = b.existing("features", Role::activation, c.dtype(), {24 + 20, 64});
  const Value out = forward(c, merger, features, sizes, images);
  EXPECT_EQ(out.shape(), (Shape{6 + 5, 96}));
  std::vector<Shape> unfolded;
  std::vector<std::int64_t> scratch;
  for (const auto& n : b.graph.nodes) {
    if (std::string_view(n.name) != "im2col") continue;
    unfolded.push_back(b.graph.tensor(b.graph.outputs(n)[0]).shape);
    for (auto s : b.graph.scratch_of(n)) scratch.push_back(s.value());
  }
  EXPECT_EQ(unfolded, (std::vector<Shape>{{1, 256, 6}, {1, 256, 5}}));
  EXPECT_EQ(scratch, (std::vector<std::int64_t>{24 * 64 * 2, 20 * 64 * 2}));  // the permuted grid is copied first
}

}  // namespace
}  // namespace vlmest::pixtral_family_test
