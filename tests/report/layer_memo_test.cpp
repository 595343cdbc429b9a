// SPDX-License-Identifier: Apache-2.0
// A replay that passes over known layers says and leaves what one does that runs them all: for every shipped model, in
// inference and in training, and under settings of the allocator that change what its state is.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/transform/training_step.hpp>

#include "../block_places.hpp"
#include "../sanitizer.hpp"

namespace vlmest::layer_memo_test {
namespace {

using allocator::AllocatorConfig;
using allocator::PhaseMemory;
using allocator::Process;
using namespace literals;

const std::filesystem::path models = std::string(VLMEST_SOURCE_DIR) + "/models/vlm";

/// All but a classifier and DiffusionGemma, which return no loss, and Moondream, whose training is its own.
std::vector<std::string> names() {
  std::vector<std::string> r;
  for (const auto& f : std::filesystem::directory_iterator(models))
    if (const std::string name = f.path().stem().string();
        name != "shieldgemma-2-4b" && name != "moondream2" && !name.starts_with("diffusiongemma-"))
      r.push_back(name);
  std::sort(r.begin(), r.end());
  return r;
}
Vlm model(const std::string& name) {
  std::ifstream in(models / (name + ".json"));
  return json::read_model(nlohmann::json::parse(in), name);
}

void expect_equal(const PhaseMemory& a, const PhaseMemory& b) {
  EXPECT_EQ(a.before, b.before);
  EXPECT_EQ(a.peak, b.peak);
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.reserved, b.reserved);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.scratch, b.scratch);
  EXPECT_EQ(a.at_peak, b.at_peak);
}

/// Runs a graph with its layers known and without.
void compare(const Graph& g, const AllocatorConfig& config) {
  Graph plain = g;
  plain.layers.clear();
  const Timeline timeline(g);
  Process some(g, timeline, 90, config), all(plain, timeline, 90, config);
  std::vector<allocator::PhaseMemory> of_some, of_all;
  const allocator::Unobserved unobserved;
  allocator::walk(g.script, g, some, unobserved, [&](const allocator::PhaseMemory& m) { of_some.push_back(m); });
  allocator::walk(g.script, plain, all, unobserved, [&](const allocator::PhaseMemory& m) { of_all.push_back(m); });
  ASSERT_EQ(of_some.size(), of_all.size());
  ASSERT_FALSE(of_some.empty());
  for (std::size_t i = 0; i < of_some.size(); ++i) expect_equal(of_some[i], of_all[i]);
  EXPECT_EQ(block_places(some), block_places(all));
  for (std::size_t i = 0; i < timeline.storages().size(); ++i) ASSERT_EQ(some.occupied(i), all.occupied(i)) << i;
  EXPECT_EQ(some.library_workspaces(), all.library_workspaces());
}

class LayerMemo : public testing::TestWithParam<std::string> {};

TEST_P(LayerMemo, LeavesWhatTheLayersLeave) {
  const Vlm vlm = model(GetParam());
  Plan plan;
  const bool one_picture = vlm.family.traits().instruction > 0 || GetParam() == "deepseek-ocr";
  plan.images = one_picture ? 1 : 2;  // of an instruction, or of a prompt
  plan.batch = 2;
  const Sequences s = make_sequences(vlm, plan);
  Builder inference, training;
  Context of_inference{inference, plan, stack_of(plan)}, of_training{training, plan, stack_of(plan)};
  build_inference(of_inference, vlm, s, s.seq + plan.new_tokens);
  build_training(of_training, vlm, s);
  EXPECT_FALSE(inference.graph.layers.empty());
  for (const Graph* g : {&inference.graph, &training.graph}) {
    compare(*g, {});
    compare(*g, {.total_memory = Bytes(std::int64_t{1} << 50), .expandable_segments = true});
    compare(*g, {.max_split_size = 64_MiB});
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, LayerMemo, testing::ValuesIn(some_of(names(), 2)), [](const auto& p) {
  std::string r = p.param;
  std::replace_if(
      r.begin(), r.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return r;
});

/// Qwen2.5-VL's tower keeps nothing but its hidden states, so that most of its layers are passed over.
TEST(LayerMemoOf, PassesOverATower) {
  const Vlm vlm = model("qwen2.5-vl-7b");
  const Plan plan;
  const Sequences s = make_sequences(vlm, plan);
  Builder b;
  Context c{b, plan, stack_of(plan)};
  build_inference(c, vlm, s, s.seq + plan.new_tokens);
  const Timeline timeline(b.graph);
  allocator::CachingAllocator heap;
  const std::size_t storages = timeline.storages().size();
  allocator::HeldStorages held{std::vector<allocator::Block>(storages), std::vector<Bytes>(storages)};
  const Phase& prefill = b.graph.phases.front();
  std::size_t next = 0, ran = 0;
  const auto take = [&](std::size_t i) {
    const auto placed = heap.take(timeline.storages()[i].bytes);
    held.blocks[i] = placed.block;
    held.sizes[i] = placed.size;
  };
  for (; timeline.storages()[next].born < prefill.first; ++next) take(next);
  allocator::AlikeLayers alike(b.graph, timeline);
  allocator::LayerMemo memo(b.graph, timeline, alike, heap, held);
  for (NodeId n = prefill.first; n < prefill.last; ++n, ++ran) {
    if (memo.at_layer(n)) {
      if (const auto behind = memo.pass(next)) n = behind->node, next = behind->storage;
      if (memo.at_layer(n)) memo.begin(next);
    }
    for (const auto i : timeline.frees(n)) heap.free(std::exchange(held.blocks[static_cast<std::size_t>(i)], {}));
    for (; next < storages && timeline.storages()[next].born <= n; ++next) take(next);
    if (memo.ends_at(n + 1)) memo.end(next);
  }
  EXPECT_LT(ran, static_cast<std::size_t>(prefill.last - prefill.first) * 6 / 10);
}

}  // namespace
}  // namespace vlmest::layer_memo_test
