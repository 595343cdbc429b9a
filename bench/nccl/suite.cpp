// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include <bench/harness/nvml.hpp>
#include <bench/harness/report.hpp>
#include <bench/nccl/ranks.hpp>
#include <bench/nccl/suite.hpp>
#include <benchmark/benchmark.h>
#include <kernels/cuda/device.hpp>
#include <nlohmann/json.hpp>

#include "command/command.hpp"

namespace vlmest::bench::nccl {
namespace {

/// What collectives need, and what --list names where there are none.
constexpr int fewest = 2;

void add_context(const Ranks& ranks) {
  cuda::check(cudaSetDevice(0));
  const std::string driver = Nvml().driver_version();
  benchmark::AddCustomContext("device", cuda::device_name());
  if (!driver.empty()) benchmark::AddCustomContext("driver", driver);
  benchmark::AddCustomContext("nccl", ranks.version());
  benchmark::AddCustomContext("ranks", std::to_string(ranks.count()));
}

void measure(benchmark::State& state, const Point& p, Ranks& ranks, Progress& progress, Seconds budget) {
  progress.begin(name(p, ranks.count()));
  Timing t;
  std::string failed;
  if (budget.value > 0 && progress.passed() >= budget) failed = "the budget of time is spent";
  if (failed.empty()) try {
      t = ranks.measure(p, {.budget = {0.05}});
    } catch (const Error& e) {
      failed = e.what();
    }
  progress.end();
  if (!failed.empty()) state.SkipWithError(failed.c_str());
  for (auto _ : state) state.SetIterationTime(t.time.median);
  const nlohmann::ordered_json label{
      {"op", vlmest::name(p.kind)}, {"ranks", ranks.count()}, {"bytes", p.bytes.value()}, {"dtype", "bf16"}};
  state.SetLabel(label.dump());
  if (!failed.empty()) return;
  const double traffic = ring_traffic(p.kind, ranks.count()) * static_cast<double>(p.bytes.value());
  state.counters["bus_bytes_per_s"] = traffic / t.time.median;
  state.counters["samples"] = t.samples;
  state.counters["calls"] = t.calls;
  state.counters["deviation"] = t.time.deviation;
}

}  // namespace

int run(const tool::BenchOptions& o, const std::function<void()>& report) {
  const std::vector<Point> all = points(o.ops, o.filter, std::max(devices(), fewest));
  if (o.list) {
    for (const Point& p : all) std::printf("%s\n", name(p, std::max(devices(), fewest)).c_str());
    return tool::Exit::done;
  }
  if (const int n = devices(); n < fewest)
    throw Error("vlmest-bench", std::to_string(n) + " GPU" + (n == 1 ? "" : "s") + " can be used here",
                "collectives need two or more; CUDA_VISIBLE_DEVICES says which");
  Bytes most{};
  for (const Point& p : all) most = std::max(most, p.bytes);
  Ranks ranks(most);
  const Seconds expected{0.1 * static_cast<double>(all.size())};
  std::fprintf(stderr, "%zu points, about %.0f s\n", all.size(), expected.value);
  add_context(ranks);
  Progress progress(all.size(), expected);
  for (const Point& p : all)
    benchmark::RegisterBenchmark(
        name(p, ranks.count()).c_str(),
        [&p, &ranks, &progress, &o](benchmark::State& s) { measure(s, p, ranks, progress, {o.budget}); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  report();
  return tool::Exit::done;
}

}  // namespace vlmest::bench::nccl
