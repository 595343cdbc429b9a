// SPDX-License-Identifier: Apache-2.0
// What torch.utils.checkpoint costs the host: the tensors that checkpointed layers save, and the time of their hooks.
#include <gtest/gtest.h>

#include <vlmest/report/training.hpp>

#include "../conformance/recorded_model.hpp"

namespace vlmest::checkpointed_work_test {
namespace {

struct Built {
  Builder b;
  Plan plan;
  explicit Built(Plan p, bool copies = true) : plan(std::move(p)) {
    const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/llava-1.5-7b.json";
    const Vlm vlm = json::hf::read(conformance::cut_layers(conformance::read_json(path), 4), path);
    plan.text = 60;
    b.copy_layers = copies;
    Context c{b, plan};
    build_training(c, vlm, make_sequences(vlm, plan));
  }
};
Plan full() {
  Plan p;
  p.checkpointing = Checkpointing::full;
  return p;
}
std::vector<std::int64_t> saved(const Graph& g) {
  std::vector<std::int64_t> r;
  for (const auto& s : g.second_forwards) r.push_back(s.saved);
  return r;
}

/// In the order of the backward, by torch's derivatives.yaml. LLaMA's layer: two norms of 6 (pow 1, rsqrt 1, two
/// products 2 each), seven projections of 2, rotary embedding 4, attention 7, SiLU 1 and its product 2. CLIP's: two
/// norms of 5 (bias included), six linears of 2, attention 7, sigmoid 1 and its product 2. Its last layer is not used.
TEST(CheckpointedWork, CountsWhatALayerSaves) {
  EXPECT_EQ(saved(Built(full()).b.graph), (std::vector<std::int64_t>{40, 40, 40, 40, 32}));
  EXPECT_EQ(saved(Built(full(), false).b.graph), saved(Built(full()).b.graph)) << "without copies of layers";
  EXPECT_TRUE(Built(Plan{}).b.graph.second_forwards.empty());
}

TEST(CheckpointedWork, IsThatOfCheckpointedLayers) {
  Plan p = full();
  p.checkpointed = {.vision = false, .language = true, .layers = 3};
  EXPECT_EQ(saved(Built(p).b.graph), (std::vector<std::int64_t>{40, 40, 40}));
  p = full();
  p.trainable.vision = false;
  p.input_gradients = false;
  EXPECT_EQ(saved(Built(p).b.graph), (std::vector<std::int64_t>{40, 40, 40, 40})) << "a frozen layer saves nothing";
}

TEST(CheckpointedWork, TheSecondForwardEndsWithTheLastTensor) {
  const Built checkpointed(full()), plain{Plan{}};
  const Graph& g = checkpointed.b.graph;
  const std::vector<Work> works = op_works(g, {});
  const CheckpointedWork w = checkpointed_work(g, g.phases.at(1), works);
  EXPECT_EQ(w.layers, 5);
  EXPECT_EQ(w.saved, 192);
  const Graph& h = plain.b.graph;
  const auto kernels = [](const Graph& of, const Phase& p) {
    return work(of, p.first, p.last, op_works(of, {})).kernels;
  };
  EXPECT_EQ(w.kernels, kernels(g, g.phases.at(1)) - kernels(h, h.phases.at(1)));
  EXPECT_EQ(checkpointed_work(g, g.phases.at(0), works).layers, 0) << "they run again in the backward";
}

TEST(CheckpointedWork, EachMicroBatchHasItsOwn) {
  Plan p = full();
  p.gradient_accumulation = 4;
  const Built built(p);
  const Graph& g = built.b.graph;
  ASSERT_EQ(g.phases.size(), 5u);
  for (const std::size_t backward : {1u, 3u})
    EXPECT_EQ(checkpointed_work(g, g.phases.at(backward), op_works(g, {})).saved, 192);
}

TEST(CheckpointedWork, TakesTheHostsTime) {
  Device d;
  d.forward_launch = {30e-6};
  d.backward_launch = {20e-6};
  d.checkpoint_forward = {100e-6, 5e-6};
  d.checkpoint_backward = {200e-6, 10e-6};
  Work w;
  w.kernels = 1000;
  const CheckpointedWork plain, c{.layers = 10, .saved = 400, .kernels = 300};
  EXPECT_DOUBLE_EQ(launched_forward(w, plain, d).host.ms(), 30);
  EXPECT_DOUBLE_EQ(launched_forward(w, c, d).host.ms(), 30 + 1 + 2);
  EXPECT_DOUBLE_EQ(launched_backward(w, plain, d).host.ms(), 20);
  EXPECT_DOUBLE_EQ(launched_backward(w, c, d).host.ms(), 700 * 20e-3 + 300 * 30e-3 + 2 + 4);
}

/// A graph that is replayed runs no Python, and a GPU that is busy hides it.
TEST(CheckpointedWork, IsHiddenBehindTheGpu) {
  Work w;
  w.kernels = 10;
  w.time = w.compute_bound = {1.0};
  Device slow, fast;
  slow.checkpoint_forward.tensor = slow.checkpoint_backward.tensor = {1e-3};
  const CheckpointedWork c{.layers = 1, .saved = 400};
  const auto time = [&](const Device& d) {
    const std::vector<LaunchedWork> phases{launched_forward(w, c, d), launched_backward(w, c, d)};
    return run_time(phases, d);
  };
  EXPECT_EQ(time(slow).graph, time(fast).graph);
  EXPECT_EQ(time(slow).wall, time(fast).wall);
  w.time = w.compute_bound = {};
  EXPECT_EQ(time(slow).graph, time(fast).graph);
  EXPECT_GT(time(slow).wall.ms(), 800);
}

}  // namespace
}  // namespace vlmest::checkpointed_work_test
