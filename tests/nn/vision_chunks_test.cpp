// SPDX-License-Identifier: Apache-2.0
// The vision tower on a few images at a time: how often it is called, on what, and what is alive meanwhile.
#include <algorithm>
#include <map>
#include <ostream>

#include <gtest/gtest.h>

#include <vlmest/family/idefics2/rule.hpp>
#include <vlmest/family/idefics3/family.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>

#include "../conformance/recorded_model.hpp"
#include "family_support.hpp"
#include "training_support.hpp"

namespace vlmest::vision_chunks_test {
namespace {

Vlm published(const std::string& name) {
  const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/" + name + ".json";
  Vlm v = json::read_model(conformance::cut_layers(conformance::read_json(path), 2), path);
  if (auto* r = get_if<image_processor::LlavaOnevision>(&v.image_processor)) r->tile_several = true;
  return v;
}
/// With every image one tile.
Vlm untiled(const std::string& name) {
  Vlm v = published(name);
  if (auto* r = get_if<image_processor::Idefics2>(&v.image_processor)) r->tiling = image_processor::Tiling::never;
  if (auto* r = get_if<image_processor::Idefics3>(&v.image_processor)) r->tiling = image_processor::Tiling::never;
  return v;
}

Plan plan_of(std::int64_t batch, std::int64_t images, std::int64_t chunk) {
  Plan p;
  p.batch = batch;
  p.images = images;
  p.text = 20;
  p.vision_chunk = chunk;
  return p;
}

bool is_vision(const Graph& g, const Node& n) {
  return g.scopes[static_cast<std::size_t>(n.scope)].part == Part::vision;
}

/// Calls of the tower, told by its patch embedding.
std::int64_t calls(const Graph& g) {
  return std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) {
    return is_vision(g, n) &&
           path(g, n.scope).find("patch_emb") + path(g, n.scope).find("patch_conv") != 2 * std::string::npos &&
           std::string_view(n.name).find("conv") != std::string_view::npos;
  });
}

/// Products of the tower and the projector, and of the language model.
std::pair<std::int64_t, std::int64_t> product_flops(const Graph& g) {
  std::pair<std::int64_t, std::int64_t> r;
  for (const Node& n : g.nodes)
    if (const auto* m = std::get_if<Matmul>(&g.op(n)))
      (g.scopes[static_cast<std::size_t>(n.scope)].part == Part::language ? r.second : r.first) +=
          cost(*m).flops.value();
  return r;
}

/// The most bytes of activations alive while the tower runs.
std::int64_t vision_peak(const Graph& g) {
  std::int64_t live = 0, most = 0;
  std::vector<std::int64_t> change(g.nodes.size() + 1);
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none || t.role != Role::activation) continue;
    change[static_cast<std::size_t>(t.born)] += requested_bytes(t).value();
    if (t.dies != none) change[static_cast<std::size_t>(std::max(t.born, t.dies))] -= requested_bytes(t).value();
  }
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    live += change[i];
    if (is_vision(g, g.nodes[i])) most = std::max(most, live);
  }
  return most;
}

struct Case {
  const char* config;
  std::int64_t batch = 2, images = 2, rows = 4;  ///< what is counted in chunks
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.config; }

class VisionChunks : public testing::TestWithParam<Case> {};

TEST_P(VisionChunks, OneCallForEachChunk) {
  const Case& at = GetParam();
  const Vlm v = untiled(at.config);
  const Graph whole = test::inference(v, plan_of(at.batch, at.images, 0));
  const std::int64_t once = calls(whole);
  ASSERT_GT(once, 0);
  for (const std::int64_t chunk : {std::int64_t{1}, at.rows - 1, at.rows}) {
    const Graph g = test::inference(v, plan_of(at.batch, at.images, chunk));
    EXPECT_EQ(calls(g), once * ((at.rows + chunk - 1) / chunk)) << chunk;
    EXPECT_EQ(product_flops(g), product_flops(whole)) << "the same is computed, in chunks of " << chunk;
  }
}

TEST_P(VisionChunks, AreAliveOneAtATime) {
  const Case& at = GetParam();
  const Vlm v = untiled(at.config);
  const Graph whole = test::inference(v, plan_of(at.batch * 8, at.images, 0));
  const Graph ones = test::inference(v, plan_of(at.batch * 8, at.images, 1));
  // What stays of each are the features alone.
  EXPECT_LT(vision_peak(ones), vision_peak(whole) / 2);
}

INSTANTIATE_TEST_SUITE_P(Families, VisionChunks,
                         testing::Values(Case{"llava-1.5-7b"}, Case{"llava-next-mistral-7b"},
                                         Case{"llava-onevision-qwen2-0.5b"}, Case{"qwen2-vl-2b"}, Case{"qwen2.5-vl-3b"},
                                         Case{"qwen3-vl-4b"}, Case{"internvl3-2b"}, Case{"paligemma-3b-224"},
                                         Case{"gemma-3-4b"}, Case{"idefics2-8b"}, Case{"idefics3-8b"},
                                         Case{"smolvlm-2.2b"}, Case{"aya-vision-8b"}, Case{"glm-4.1v-9b"},
                                         Case{"pixtral-12b", 2, 1, 2}, Case{"mistral-small-3.1-24b", 2, 1, 2},
                                         Case{"blip2-opt-2.7b", 3, 1, 3}, Case{"llama-3.2-11b-vision"}));

TEST(VisionChunks, CountTilesWhereTheProcessorHandsTilesOver) {
  Plan p = plan_of(1, 1, 3);
  p.image_height = p.image_width = 1344;  // nine tiles and a thumbnail
  EXPECT_EQ(calls(test::inference(published("internvl3-2b"), p)), 4);
  // Any-resolution rules: an image with its tiles.
  Plan next = plan_of(4, 1, 2);
  next.image_height = next.image_width = 672;
  EXPECT_EQ(calls(test::inference(published("llava-next-mistral-7b"), next)), 2);
}

TEST(VisionChunks, OneChunkOfAListChangesNothing) {
  // The line hands the list on; a tensor would be concatenated with nothing.
  EXPECT_EQ(test::rows(test::inference(published("llava-1.5-7b"), plan_of(2, 2, 4))),
            test::rows(test::inference(published("llava-1.5-7b"), plan_of(2, 2, 0))));
  const Vlm internvl = published("internvl3-2b");
  const auto nodes = [&](std::int64_t chunk) { return test::inference(internvl, plan_of(2, 2, chunk)); };
  EXPECT_EQ(test::count(nodes(4), "cat", "model"), test::count(nodes(0), "cat", "model") + 1);
}

/// Bytes of activations at the end of the forward, and the most while the tower runs.
std::pair<std::int64_t, std::int64_t> training(const Plan& plan) {
  const Graph g = test::training(published("llava-1.5-7b"), plan);
  std::int64_t kept = 0;
  const NodeId end = g.phases.front().last;
  for (const Tensor& t : g.tensors)
    if (t.alias_of == none && t.role == Role::activation && t.born < end && (t.dies == none || t.dies >= end))
      kept += requested_bytes(t).value();
  return {kept, vision_peak(g)};
}

TEST(VisionChunks, SaveInTrainingWhatIsNotKeptForTheBackward) {
  const auto chunked = [](Plan p) {
    p.vision_chunk = 1;
    return p;
  };
  Plan trained = plan_of(8, 2, 0);
  EXPECT_GT(training(chunked(trained)).first, training(trained).first * 99 / 100) << "every chunk's are kept";
  Plan frozen = trained;
  frozen.trainable.vision = frozen.trainable.projector = false;
  EXPECT_LT(training(chunked(frozen)).second, training(frozen).second / 2);
  Plan checkpointed = trained;
  checkpointed.checkpointing = Checkpointing::full;
  EXPECT_LT(training(chunked(checkpointed)).second, training(checkpointed).second);
}

TEST(VisionChunks, WhatIsNotModelledSaysSo) {
  Plan p = plan_of(2, 1, 1);
  p.amp = true;
  p.dtype = DType::fp32;
  p.checkpointing = Checkpointing::full;
  EXPECT_THROW(test::training(published("llava-1.5-7b"), p), Error);
  p.trainable.vision = false;
  p.input_gradients = false;
  EXPECT_NO_THROW(test::training(published("llava-1.5-7b"), p));
  p = plan_of(2, 1, -1);
  EXPECT_THROW(make_sequences(published("llava-1.5-7b"), p), Error);
  // Sequences with different numbers of tiles: one chunk could be all padding.
  const Vlm smol = published("smolvlm-2.2b");
  Sequences s = test::prompts(untiled("smolvlm-2.2b").image_processor, {{384, 384}});
  s.batch = 2;
  s.images.push_back(layout(smol.image_processor, {800, 800}));
  const Plan one = plan_of(2, 1, 1);
  EXPECT_THROW(test::prefill_graph(get<Idefics3Family>(smol.family), s, one), Error);
}

}  // namespace
}  // namespace vlmest::vision_chunks_test
