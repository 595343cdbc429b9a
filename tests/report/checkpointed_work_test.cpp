// SPDX-License-Identifier: Apache-2.0
// What torch.utils.checkpoint costs the host: the tensors that checkpointed layers save, and the time of their hooks.
#include <gtest/gtest.h>

#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/training.hpp>

#include "../conformance/recorded_model.hpp"

namespace vlmest::checkpointed_work_test {
namespace {

struct Built {
  Builder b;
  Plan plan;
  explicit Built(Plan p, bool copies = true) : plan(std::move(p)) {
    const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/llava-1.5-7b.json";
    const Vlm vlm = json::read_model(conformance::cut_layers(conformance::read_json(path), 4), path);
    plan.text = 60;
    b.copy_layers = copies;
    Context c{b, plan, stack_of(plan)};
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
  const CheckpointedWork w = checkpointed_work(g, g.phases.at(1));
  EXPECT_EQ(w.layers, 5);
  EXPECT_EQ(w.saved, 192);
  const Graph& h = plain.b.graph;
  const auto kernels = [](const Graph& of, NodeId first, NodeId last) {
    return work(of, first, last, op_works(of, {})).kernels;
  };
  std::int64_t again = 0;
  for (const auto& s : g.second_forwards) again += kernels(g, s.first, s.last);
  const Phase &b = g.phases.at(1), &c = h.phases.at(1);
  EXPECT_EQ(again, kernels(g, b.first, b.last) - kernels(h, c.first, c.last));
  EXPECT_EQ(checkpointed_work(g, g.phases.at(0)).layers, 0) << "they run again in the backward";
}

TEST(CheckpointedWork, EachMicroBatchHasItsOwn) {
  Plan p = full();
  p.gradient_accumulation = 4;
  const Built built(p);
  const Graph& g = built.b.graph;
  ASSERT_EQ(g.phases.size(), 5u);
  for (const std::size_t backward : {1u, 3u}) EXPECT_EQ(checkpointed_work(g, g.phases.at(backward)).saved, 192);
}

/// Of a graph whose kernels take no time on the device.
TEST(CheckpointedWork, TakesTheHostsTime) {
  Device d;
  d.graph_gap = {};
  d.forward_launch = {30e-6};
  d.backward_launch = {20e-6};
  d.checkpoint_forward = {100e-6, 5e-6};
  d.checkpoint_backward = {200e-6, 10e-6};
  const Built built(full());
  const Graph& g = built.b.graph;
  const Phase &forward = g.phases.at(0), &backward = g.phases.at(1);
  std::vector<Work> works(g.ops.size());
  for (Work& w : works) w.kernels = 1;
  const CheckpointedWork c = checkpointed_work(g, backward);
  const Work all = work(g, forward.first, forward.last, works);
  Pace p, plain, q;
  const auto host = [](const Pace& of) { return of.streams.end(Stream::host); };
  run_forward(p, g, forward, all, c, works, d);
  run_forward(plain, g, forward, all, {}, works, d);
  EXPECT_NEAR(host(plain).ms(), static_cast<double>(all.kernels) * 30e-3, 1e-9);
  EXPECT_NEAR(host(p).ms() - host(plain).ms(), 5 * 0.1 + 192 * 5e-3, 1e-9);
  std::int64_t again = 0;
  for (const auto& s : g.second_forwards) again += s.last - s.first;
  run_backward(q, g, backward, works, d);
  const auto others = static_cast<double>(backward.last - backward.first - again);
  EXPECT_NEAR(host(q).ms(), others * 20e-3 + static_cast<double>(again) * 30e-3 + 5 * 0.2 + 192 * 10e-3, 1e-9);
}

/// A graph that is replayed runs no Python, and a GPU that is busy hides it.
TEST(CheckpointedWork, IsHiddenBehindTheGpu) {
  const Built built(full());
  const Graph& g = built.b.graph;
  Device slow, fast;
  slow.checkpoint_forward.tensor = slow.checkpoint_backward.tensor = {1e-3};
  const auto time = [&](const Device& d, Seconds kernel) {
    std::vector<Work> works(g.ops.size());
    for (Work& w : works) {
      w.kernels = 1;
      w.time = w.compute_bound = kernel;
    }
    Pace p;
    run_forward(p, g, g.phases.at(0), work(g, g.phases[0].first, g.phases[0].last, works),
                checkpointed_work(g, g.phases.at(1)), works, d);
    run_backward(p, g, g.phases.at(1), works, d);
    return p.result({});
  };
  const Seconds long_kernel{10e-3};
  EXPECT_EQ(time(slow, long_kernel).graph, time(fast, long_kernel).graph);
  EXPECT_NEAR(time(slow, long_kernel).wall.ms(), time(fast, long_kernel).wall.ms(), 2) << "but for the first launch";
  EXPECT_EQ(time(slow, {}).graph, time(fast, {}).graph);
  EXPECT_GT(time(slow, {}).wall.ms() - time(fast, {}).wall.ms(), 300);
}

}  // namespace
}  // namespace vlmest::checkpointed_work_test
