// SPDX-License-Identifier: Apache-2.0
// A memory snapshot out of its pickle, and its analysis. A hundred thousand events are to take less than 0.2 s.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include <vlmest/diagnose/evidence/snapshot/analysis.hpp>
#include <vlmest/diagnose/evidence/snapshot/read.hpp>

namespace snapshot_bench {
namespace {

using namespace vlmest::diagnose;

std::string number(std::uint64_t n, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(n >> (8 * i) & 255);
  return s;
}
std::string word(std::string_view s) { return "\x8c" + number(s.size(), 1) + std::string(s); }

/// A pickle of protocol 4 in which 3,000 stack frames stand once, and each event refers to 60 of them.
std::string pickle(std::int64_t events) {
  std::mt19937 random(1);
  std::string p = "\x80\x04}(" + word("frames of the run") + "](";
  for (std::uint32_t i = 0; i < 3000; ++i)
    p += "}\x94(" + word("filename") + word("site-packages/torch/nn/modules/f" + std::to_string(i % 300) + ".py") +
         word("line") + "M" + number(i, 2) + word("name") + word("forward" + std::to_string(i % 700)) + "u";
  p += "e" + word("device_traces") + "](](";
  std::vector<std::string> stacks(2000);
  for (auto& s : stacks)
    for (int i = 0; i < 60; ++i) s += "j" + number(random() % 3000, 4);
  const std::string actions[] = {word("alloc"), word("free_requested"), word("free_completed")};
  for (std::int64_t e = 0; e < events; ++e) {
    const auto block = static_cast<std::uint64_t>(e / 3);
    p += "}(" + word("action") + actions[e % 3] + word("addr") + "\x8a\x06" + number(0x7f0000000000 + 4096 * block, 6) +
         word("size") + "J" + number(1024 * (1 + block % 4000), 4) + word("stream") + "K" + number(0, 1) +
         word("time_us") + "J" + number(static_cast<std::uint64_t>(e), 4) + word("frames") + "](" +
         stacks[random() % stacks.size()] + "eu";
  }
  return p + "eeu.";
}

void snapshot_read(benchmark::State& state) {
  const auto file = pickle(state.range(0));
  for (auto _ : state) {
    ByteSource source(file);
    benchmark::DoNotOptimize(read_recorded_snapshot(source, "file"));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(file.size()) * state.iterations());
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(snapshot_read)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void snapshot_analysed(benchmark::State& state) {
  const auto file = pickle(state.range(0));
  ByteSource source(file);
  const auto snapshot = read_recorded_snapshot(source, "file");
  for (auto _ : state) benchmark::DoNotOptimize(analyse(snapshot, 0));
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(snapshot_analysed)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace snapshot_bench
