// SPDX-License-Identifier: Apache-2.0
// One inference estimate: whole, by steps, and against the number of layers.
#include <benchmark/benchmark.h>

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "models.hpp"

namespace estimate_bench {
namespace {

using namespace vlmest;

/// A warm estimator: sequence, graph of prefill and decode, allocator replay, work, breakdown.
void estimate(benchmark::State& state, const Vlm& vlm) {
  const Device device = bench::device("h200-sxm");
  const Plan plan;
  Estimator estimator;
  for (auto _ : state) benchmark::DoNotOptimize(estimator(vlm, plan, device));
  const Graph& g = estimator.graph();
  state.counters["tensors"] = static_cast<double>(g.tensors.size());
  state.counters["nodes"] = static_cast<double>(g.nodes.size());
}

void inference(benchmark::State& state, const char* name) { estimate(state, bench::model(name)); }
BENCHMARK_CAPTURE(inference, llava_next_7b, "llava-next-7b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, llava_onevision_7b, "llava-onevision-7b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, internvl3_8b, "internvl3-8b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, qwen2_5_vl_7b, "qwen2.5-vl-7b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, qwen3_vl_30b_a3b, "qwen3-vl-30b-a3b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, gemma_3_4b, "gemma-3-4b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(inference, llama_3_2_11b_vision, "llama-3.2-11b-vision")->Unit(benchmark::kMicrosecond);

/// LLaVA-NeXT with another number of layers in its language model; the cost is linear in them.
void inference_layers(benchmark::State& state) {
  auto description = nlohmann::json::parse(bench::read(VLMEST_MODELS "/vlm/llava-next-7b.json"));
  description.erase("expect");
  description["model"]["text_config"]["num_hidden_layers"] = state.range(0);
  estimate(state, json::read_model(description, "llava-next-7b"));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(inference_layers)
    ->RangeMultiplier(2)
    ->Range(8, 128)
    ->Unit(benchmark::kMicrosecond)
    ->Complexity(benchmark::oN);

/// The steps of the same estimate.
struct Built {
  Vlm vlm = bench::model("llava-next-7b");
  Device device = bench::device("h200-sxm");
  Plan plan;
  Sequences sequences = make_sequences(vlm, plan);
  Builder builder;
  Timeline timeline;

  Built() {
    build();
    timeline.assign(builder.graph);
  }
  void build() {
    builder.clear();
    Context c{builder, plan, stack_of(plan)};
    build_inference(c, vlm, sequences, sequences.seq + plan.new_tokens);
  }
};

void inference_build(benchmark::State& state) {
  Built b;
  for (auto _ : state) b.build();
}
void inference_timeline(benchmark::State& state) {
  Built b;
  for (auto _ : state) b.timeline.assign(b.builder.graph);
}
/// Load, the prefill twice, one decode step.
void inference_replay(benchmark::State& state) {
  Built b;
  const Graph& g = b.builder.graph;
  for (auto _ : state) {
    allocator::Process process(g, b.timeline, b.device.sm);
    process.load();
    process.run(g.phases[0]);
    process.drop();
    process.run(g.phases[0]);
    process.keep();
    benchmark::DoNotOptimize(process.run(g.phases[1]));
  }
}
void inference_work_and_rows(benchmark::State& state) {
  Built b;
  const Graph& g = b.builder.graph;
  for (auto _ : state) {
    const std::vector<Work> of_ops = op_works(g, b.device);
    benchmark::DoNotOptimize(work(g, g.phases[1].first, g.phases[1].last, of_ops));
    benchmark::DoNotOptimize(breakdown(g, b.timeline, {}, of_ops));
  }
}
BENCHMARK(inference_build)->Unit(benchmark::kMicrosecond);
BENCHMARK(inference_timeline)->Unit(benchmark::kMicrosecond);
BENCHMARK(inference_replay)->Unit(benchmark::kMicrosecond);
BENCHMARK(inference_work_and_rows)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace estimate_bench
