// SPDX-License-Identifier: Apache-2.0
// One training estimate: of several models, by steps, with each way of checkpointing; and a planner's sweep on several
// threads.
#include <array>

#include <benchmark/benchmark.h>

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/transform/training_step.hpp>

#include "models.hpp"

namespace training_bench {
namespace {

using namespace vlmest;

void training(benchmark::State& state, const char* name, const Plan& plan) {
  const Vlm vlm = bench::model(name);
  const Device device = bench::device("h200-sxm");
  Estimator estimate;
  for (auto _ : state) benchmark::DoNotOptimize(estimate(vlm, plan, device, Phases::train));
  state.counters["nodes"] = static_cast<double>(estimate.training_graph().nodes.size());
  state.counters["tensors"] = static_cast<double>(estimate.training_graph().tensors.size());
}
Plan with(Checkpointing c) {
  Plan p;
  p.checkpointing = c;
  return p;
}
Plan with_adapters() {
  Plan p;
  p.lora.rank = 16;
  return p;
}
Plan with_amp() {
  Plan p;
  p.amp = true;
  return p;
}
BENCHMARK_CAPTURE(training, llava_next_7b, "llava-next-7b", Plan{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, llava_next_7b_full_checkpointing, "llava-next-7b", with(Checkpointing::full))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, llava_next_7b_selective_checkpointing, "llava-next-7b", with(Checkpointing::selective))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, llava_next_7b_lora, "llava-next-7b", with_adapters())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, llava_next_7b_amp, "llava-next-7b", with_amp())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, qwen2_5_vl_7b, "qwen2.5-vl-7b", Plan{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, gemma_3_4b, "gemma-3-4b", Plan{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training, qwen3_vl_30b_a3b, "qwen3-vl-30b-a3b", Plan{})->Unit(benchmark::kMillisecond);

void training_build(benchmark::State& state) {
  const Vlm vlm = bench::model("llava-next-7b");
  const Plan plan;
  Builder builder;
  const Sequences s = make_sequences(vlm, plan);
  for (auto _ : state) {
    builder.clear();
    Context c{builder, plan, stack_of(plan)};
    build_training(c, vlm, s);
    benchmark::DoNotOptimize(builder.graph.nodes.data());
  }
}
BENCHMARK(training_build)->Unit(benchmark::kMillisecond);

void training_replay(benchmark::State& state) {
  const Vlm vlm = bench::model("llava-next-7b");
  const Plan plan;
  Builder builder;
  Context c{builder, plan, stack_of(plan)};
  build_training(c, vlm, make_sequences(vlm, plan));
  const Timeline timeline(builder.graph);
  for (auto _ : state) {
    allocator::Process process(builder.graph, timeline, 90);
    benchmark::DoNotOptimize(replay_training(builder.graph, process));
  }
}
BENCHMARK(training_replay)->Unit(benchmark::kMillisecond);

/// Batch x checkpointing x images, as a planner goes through them, without the layers and tensors of each; items are
/// estimates.
void training_sweep(benchmark::State& state) {
  const Vlm vlm = bench::model("llava-next-7b");
  const Device device = bench::device("h200-sxm");
  Estimator estimate;
  estimate.details = false;
  std::vector<Plan> plans;
  for (std::int64_t batch = 1; batch <= 8; ++batch)
    for (Checkpointing c : {Checkpointing::off, Checkpointing::full})
      for (std::int64_t images : {1, 2, 3}) {
        Plan p = with(c);
        p.batch = batch;
        p.images = images;
        plans.push_back(p);
      }
  std::size_t next = static_cast<std::size_t>(state.thread_index()) * plans.size() / 2;
  for (auto _ : state) benchmark::DoNotOptimize(estimate(vlm, plans[next++ % plans.size()], device, Phases::train));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(training_sweep)->Threads(1)->Threads(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace training_bench
