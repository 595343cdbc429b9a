// SPDX-License-Identifier: Apache-2.0
// What the result file holds, with numbers of our own instead of measured ones.
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <bench/harness/report.hpp>
#include <bench/harness/select.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vlmest/json/benchmark.hpp>

namespace vlmest::bench::report_test {
namespace {

/// The result file of these points; Google Benchmark runs them as it does on a GPU.
nlohmann::json written(const std::vector<Point>& points, const std::function<Result(const Point&)>& measure,
                       Seconds budget = {}) {
  const std::string file = testing::TempDir() + "vlmest-report-" + std::to_string(::getpid()) + ".json";
  std::vector<std::string> flags{"test", "--benchmark_out=" + file, "--benchmark_out_format=json"};
  std::vector<char*> argv;
  for (std::string& f : flags) argv.push_back(f.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  benchmark::ClearRegisteredBenchmarks();
  Progress progress(points.size(), {});
  register_points(points, measure, progress, budget);
  PointReporter display(std::make_unique<benchmark::JSONReporter>());
  std::ostringstream screen;
  display.SetOutputStream(&screen);
  PointReporter out(std::make_unique<benchmark::JSONReporter>());
  benchmark::RunSpecifiedBenchmarks(&display, &out);
  std::ifstream in(file);
  const auto document = nlohmann::json::parse(in);
  std::remove(file.c_str());
  EXPECT_EQ(nlohmann::json::parse(screen.str())["benchmarks"].size(), document["benchmarks"].size());
  return document;
}

Result some_result(const Point& p) {
  Result r{.predicted = predict(p, 90, nullptr)};
  r.timing = {.time = {.median = 37.5e-6, .mean = 40e-6, .deviation = 0.01}, .samples = 7, .calls = 6};
  r.device_bytes = Bytes(4096);
  return r;
}

TEST(ResultFile, HoldsNamesLabelsTimesAndCounters) {
  const std::vector<Point> points = select({.ops = {"linear", "sdpa/flash", "rmsnorm"}});
  const auto document = written(points, [](const Point& p) {
    Result r = some_result(p);
    r.counted = Counted{.dram_read = 100, .dram_written = 50, .l2 = 200, .tensor_ops = 1e9};
    r.traced = Traced{.busy = {36e-6}, .kernels = 2};
    r.throttled = true;
    return r;
  });
  const auto& list = document["benchmarks"];
  ASSERT_EQ(list.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& b = list[i];
    EXPECT_EQ(b["name"], name(points[i]));
    EXPECT_EQ(b["run_name"], name(points[i]));
    EXPECT_EQ(b["label"], label(points[i]));
    EXPECT_EQ(b["time_unit"], "us");
    EXPECT_DOUBLE_EQ(b["real_time"].get<double>(), 37.5) << "the median, not the mean";
    for (const auto& [key, value] : std::map<std::string, double>{{"cold", 1},
                                                                  {"samples", 7},
                                                                  {"calls", 6},
                                                                  {"deviation", 0.01},
                                                                  {"throttled", 1},
                                                                  {"device_bytes", 4096},
                                                                  {"dram_read_bytes", 100},
                                                                  {"dram_written_bytes", 50},
                                                                  {"l2_bytes", 200},
                                                                  {"tensor_ops", 1e9},
                                                                  {"kernel_us", 36},
                                                                  {"kernels", 2}}) {
      ASSERT_TRUE(b.contains(key)) << key;
      EXPECT_DOUBLE_EQ(b[key].get<double>(), value) << key;
    }
    const json::SingleOp op = json::read_op(nlohmann::json(points[i].op), "op");
    EXPECT_EQ(b["predicted_bytes"].get<double>(), static_cast<double>(op.peak.value()));
    EXPECT_FALSE(b.contains("sm_clock_mhz")) << "it was not seen";
    EXPECT_FALSE(b.contains("predicted_us")) << "the device was not described";
  }
  // And the reader of such files understands it.
  const MeasuredOp read = json::read_benchmark(list[0], "file", 90);
  EXPECT_EQ(read.variant, "cublaslt");
  EXPECT_TRUE(read.cold);
  EXPECT_DOUBLE_EQ(read.time_us.value(), 36) << "of the kernels, where it was recorded";
  EXPECT_DOUBLE_EQ(read.dram_bytes.value(), 150);
  EXPECT_FALSE(json::nothing_measured(list[0], "file"));
}

TEST(ResultFile, SkippedPointsSayWhy) {
  const std::vector<Point> points = select({.ops = {"add", "copy"}});
  const auto document = written(points, [](const Point& p) -> Result {
    if (op_name(p) == "add") throw Error("add", "needs 1 GB, 0 GB are free", "take a smaller size");
    return some_result(p);
  });
  std::size_t failed = 0;
  for (const auto& b : document["benchmarks"]) {
    if (!b.value("error_occurred", false)) continue;
    ++failed;
    EXPECT_TRUE(json::nothing_measured(b, "file"));
    EXPECT_EQ(b["error_message"], "add: needs 1 GB, 0 GB are free; take a smaller size");
    EXPECT_EQ(b["name"].get<std::string>().substr(0, 8), "add/own/");
  }
  EXPECT_EQ(failed, 1u);
}

TEST(ResultFile, PointsBeyondTheBudgetAreNotDroppedSilently) {
  const std::vector<Point> points = select({.ops = {"add", "copy"}});
  const auto document = written(points, some_result, {1e-12});
  ASSERT_EQ(document["benchmarks"].size(), points.size());
  for (const auto& b : document["benchmarks"]) EXPECT_EQ(b["error_message"], "the budget of time is spent");
}

TEST(ResultFile, NeverHoldsNan) {
  Result r;
  r.timing.time.deviation = std::numeric_limits<double>::quiet_NaN();
  r.counted = Counted{.dram_read = std::numeric_limits<double>::infinity()};
  for (const auto& [key, value] : counters(r, Cache::hot)) EXPECT_TRUE(std::isfinite(value)) << key;
  EXPECT_FALSE(counters(r, Cache::hot).contains("deviation"));
}

}  // namespace
}  // namespace vlmest::bench::report_test
