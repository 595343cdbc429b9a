// SPDX-License-Identifier: Apache-2.0
// The allocator's replay, in nanoseconds per allocation or release.
#include <random>

#include <benchmark/benchmark.h>

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "models.hpp"

namespace allocator_bench {
namespace {

using namespace vlmest;
using allocator::Block;
using allocator::CachingAllocator;

void per_event(benchmark::State& state, std::int64_t events) {
  state.counters["per_event"] =
      benchmark::Counter(static_cast<double>(events) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// The prefill of LLaVA-NeXT-7B in a process that has run it before.
void allocator_prefill(benchmark::State& state) {
  const Vlm vlm = bench::model("llava-next-7b");
  const Plan plan;
  Builder builder;
  Context c{builder, plan, stack_of(plan)};
  build_inference(c, vlm, make_sequences(vlm, plan), 0);
  const Graph& g = builder.graph;
  const Timeline timeline(g);
  const Phase& p = g.phases[0];
  std::int64_t events = 0;
  for (const auto& s : timeline.storages()) events += s.born >= p.first ? 2 : 0;
  allocator::Process process(g, timeline, 90);
  process.load();
  for (auto _ : state) {
    benchmark::DoNotOptimize(process.run(p));
    process.drop();
  }
  per_event(state, events);
}
BENCHMARK(allocator_prefill)->Unit(benchmark::kMicrosecond);

/// `range` blocks held; each step releases one at random and takes another of a random size: the worst order.
void allocator_random_order(benchmark::State& state) {
  CachingAllocator a;
  std::mt19937_64 random(1);
  const auto size = [&] {
    return Bytes(std::int64_t{1} << (9 + random() % 18)) + Bytes(static_cast<std::int64_t>(random() % 4096));
  };
  std::vector<Block> held;
  for (std::int64_t i = 0; i < state.range(0); ++i) held.push_back(a.alloc(size()));
  for (auto _ : state) {
    Block& b = held[random() % held.size()];
    a.free(b);
    b = a.alloc(size());
  }
  per_event(state, 2);
}
BENCHMARK(allocator_random_order)->Arg(64)->Arg(1024)->Arg(16384);

/// A layer's habit: temporaries that are taken and released in turn.
void allocator_in_turn(benchmark::State& state) {
  CachingAllocator a;
  for (auto _ : state) {
    const Block x = a.alloc(Bytes(24 << 20)), y = a.alloc(Bytes(7 << 20));
    a.free(x);
    const Block z = a.alloc(Bytes(3 << 20));
    a.free(y);
    a.free(z);
  }
  per_event(state, 6);
}
BENCHMARK(allocator_in_turn);

}  // namespace
}  // namespace allocator_bench
