// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <bench/harness/result.hpp>
#include <benchmark/benchmark.h>

namespace vlmest::bench {

/// The numbers of a result as the counters of a Google Benchmark run. Each is finite; what was not measured is absent.
std::map<std::string, double> counters(const Result& result, Cache cache);

/// One line on standard error, where that is a terminal: how far, how long, which point.
class Progress {
 public:
  Progress(std::size_t points, Seconds expected);
  void begin(const std::string& point);
  void end();
  Seconds passed() const;

 private:
  bool terminal_;
  std::size_t points_, done_ = 0;
  Seconds expected_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Registers each point as a Google Benchmark of manual time. `measure` does it all in the one iteration; a point for
/// which it throws Error, or for which `budget` (0: none) leaves no time, is reported with an error. Points, function
/// and progress must outlive the run.
void register_points(const std::vector<Point>& points, const std::function<Result(const Point&)>& measure,
                     Progress& progress, Seconds budget);

/// Passes runs on to a reporter of Google Benchmark, under the points' own names: without "/iterations:1/manual_time".
/// `shown` names the counters that are kept, all where it is empty.
class PointReporter : public benchmark::BenchmarkReporter {
 public:
  explicit PointReporter(std::unique_ptr<benchmark::BenchmarkReporter> inner, std::vector<std::string> shown = {})
      : inner_(std::move(inner)), shown_(std::move(shown)) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override { inner_->Finalize(); }

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> inner_;
  std::vector<std::string> shown_;
};

}  // namespace vlmest::bench
