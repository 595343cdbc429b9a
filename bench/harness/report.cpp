// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <bench/harness/report.hpp>
#include <unistd.h>

namespace vlmest::bench {

std::map<std::string, double> counters(const Result& result, Cache cache) {
  std::map<std::string, double> r;
  const auto put = [&](const char* key, double value) {
    if (std::isfinite(value)) r[key] = value;
  };
  const auto bytes = [](Bytes b) { return static_cast<double>(b.value()); };
  put("cold", cache == Cache::cold ? 1 : 0);
  put("samples", result.timing.samples);
  put("calls", result.timing.calls);
  put("deviation", result.timing.time.deviation);
  if (result.timing.clock_mhz > 0) put("sm_clock_mhz", result.timing.clock_mhz);
  if (result.state.power_w > 0) put("power_w", result.state.power_w);
  put("throttled", result.throttled ? 1 : 0);
  if (result.device_bytes) {
    put("device_bytes", bytes(*result.device_bytes));
    put("predicted_bytes", bytes(result.predicted.memory));
    put("predicted_read_bytes", bytes(result.predicted.read));
    put("predicted_written_bytes", bytes(result.predicted.written));
  }
  if (result.predicted.time) put("predicted_us", result.predicted.time->us());
  if (result.counted) {
    put("dram_read_bytes", result.counted->dram_read);
    put("dram_written_bytes", result.counted->dram_written);
    put("l2_bytes", result.counted->l2);
    if (result.counted->tensor_ops >= 0) put("tensor_ops", result.counted->tensor_ops);
  }
  if (result.walk) {
    put("tile_m", result.walk->tile_m);
    put("tile_n", result.walk->tile_n);
    put("cluster_m", result.walk->cluster_m);
    put("cluster_n", result.walk->cluster_n);
    put("split_k", result.walk->split);
    put("column_bands", result.walk->column_bands ? 1 : 0);
    put("turns", result.walk->turns ? 1 : 0);
  }
  if (result.traced) {
    put("kernel_us", result.traced->busy.us());
    put("kernels", result.traced->kernels);
  }
  return r;
}

Progress::Progress(std::size_t points, Seconds expected)
    : terminal_(isatty(STDERR_FILENO) == 1), points_(points), expected_(expected) {}
Seconds Progress::passed() const {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()};
}
void Progress::begin(const std::string& point) {
  ++done_;
  if (!terminal_) return;
  const auto seconds = [](Seconds s) { return static_cast<long>(s.value); };
  std::fprintf(stderr, "\r\033[K[%zu/%zu] %ld s of about %ld s  %.80s", done_, points_, seconds(passed()),
               std::max(seconds(expected_), seconds(passed())), point.c_str());
}
void Progress::end() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

namespace {

std::string spelt(const Error& e) { return e.where + ": " + e.what_happened + (e.hint.empty() ? "" : "; " + e.hint); }

void run(benchmark::State& state, const Point& p, const std::function<Result(const Point&)>& measure,
         Progress& progress, Seconds budget) {
  progress.begin(name(p));
  Result result;
  std::string failed;
  if (budget.value > 0 && progress.passed() >= budget) {
    failed = "the budget of time is spent";
  } else {
    try {
      result = measure(p);
    } catch (const Error& e) {
      failed = spelt(e);
    }
  }
  progress.end();
  if (!failed.empty()) state.SkipWithError(failed.c_str());
  for (auto _ : state) state.SetIterationTime(result.timing.time.median);
  if (!is_launch(p)) state.SetLabel(label(p));
  if (!failed.empty()) return;
  for (const auto& [key, value] : counters(result, p.cache)) state.counters[key] = value;
}

}  // namespace

void register_points(const std::vector<Point>& points, const std::function<Result(const Point&)>& measure,
                     Progress& progress, Seconds budget) {
  for (const Point& p : points)
    benchmark::RegisterBenchmark(name(p).c_str(), [&p, &measure, &progress, budget](
                                                      benchmark::State& s) { run(s, p, measure, progress, budget); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}

bool PointReporter::ReportContext(const Context& context) {
  inner_->SetOutputStream(&GetOutputStream());
  inner_->SetErrorStream(&GetErrorStream());
  return inner_->ReportContext(context);
}

void PointReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> renamed = runs;
  for (Run& r : renamed) {
    r.run_name.iterations.clear();
    r.run_name.time_type.clear();
    // A mean or a deviation over repetitions is no measurement of the op, which its label would say.
    if (r.run_type == Run::RT_Aggregate) r.report_label.clear();
    if (shown_.empty()) continue;
    std::erase_if(r.counters,
                  [&](const auto& c) { return std::find(shown_.begin(), shown_.end(), c.first) == shown_.end(); });
    r.report_label.clear();
  }
  inner_->ReportRuns(renamed);
  GetOutputStream().flush();  // so that little is lost where a long run is ended from outside
}

}  // namespace vlmest::bench
