// SPDX-License-Identifier: Apache-2.0
// vlmest-bench: measures single operations on the GPU of this machine. `vlmest bench` runs it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <bench/harness/context.hpp>
#include <bench/harness/report.hpp>
#include <bench/harness/select.hpp>
#include <bench/nccl/suite.hpp>
#include <benchmark/benchmark.h>
#include <kernels/cuda/device.hpp>
#include <unistd.h>

#include "bench_options.hpp"
#include "catalogue.hpp"
#include "command/command.hpp"
#include "files.hpp"

namespace vlmest::bench {
namespace {

Selection selection(const tool::BenchOptions& o) {
  Selection s{.ops = o.ops, .filter = o.filter, .cold = o.cold, .hot = o.hot, .seed = o.seed};
  if (!o.points.empty()) {
    s.list = tool::read_file(o.points);
    s.list_name = o.points == "-" ? "standard input" : o.points;
  }
  for (const auto& [word, suite] : suite_names)
    if (word == o.suite) s.suite = suite;
  return s;
}

/// The shipped description of the current GPU: the same architecture, as many multiprocessors, as much memory to 2 %.
std::optional<Device> fitting_device() {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total));
  for (const std::string& name : tool::shipped("device")) {
    Device d = tool::find_device(name);
    const double ratio = static_cast<double>(total) / static_cast<double>(d.memory_bytes.value());
    if (d.sm == cuda::sm() && d.multiprocessors == cuda::multiprocessors() && std::abs(ratio - 1) < 0.02) return d;
  }
  return std::nullopt;
}

void tell_plan(const std::vector<Point>& points, Seconds expected) {
  std::fprintf(stderr, "%zu points, about %.0f s\n", points.size(), std::ceil(expected.value));
}

int list(const std::vector<Point>& points, const Device& device) {
  for (const Point& p : points) std::printf("%s\n", name(p).c_str());
  tell_plan(points, expected_duration(points, device, {}));
  return tool::Exit::done;
}

/// Google Benchmark's own flags; `--output FILE` is two of them. Throws Error for a file that cannot be written, before
/// anything is measured.
void start_benchmark(const tool::BenchOptions& o, std::vector<std::string>& flags) {
  if (!o.output.empty() && !std::ofstream(o.output))
    throw Error(o.output, "cannot be written", "give a file in a folder that exists");
  flags = {"vlmest-bench"};
  if (!o.output.empty()) flags.insert(flags.end(), {"--benchmark_out=" + o.output, "--benchmark_out_format=json"});
  flags.insert(flags.end(), o.benchmark_flags.begin(), o.benchmark_flags.end());
  std::vector<char*> argv;
  for (std::string& f : flags) argv.push_back(f.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
}

/// The last value of a flag of Google Benchmark's, or `absent`.
std::string value_of(const std::vector<std::string>& flags, const std::string& flag, std::string absent) {
  for (const std::string& f : flags)
    if (f.starts_with("--" + flag + "=")) absent = f.substr(flag.size() + 3);
  return absent;
}

std::unique_ptr<benchmark::BenchmarkReporter> reporter(const std::string& format) {
  if (format == "json") return std::make_unique<benchmark::JSONReporter>();
  const bool colours = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return std::make_unique<benchmark::ConsoleReporter>(colours ? benchmark::ConsoleReporter::OO_ColorTabular
                                                              : benchmark::ConsoleReporter::OO_Tabular);
}

/// A terminal shows the few numbers that a reader looks at; files and other formats hold all.
void run_and_report(const std::vector<std::string>& flags, const std::vector<std::string>& shown) {
  const std::string format = value_of(flags, "benchmark_format", "console");
  PointReporter display(reporter(format), format == "console" ? shown : std::vector<std::string>{});
  if (value_of(flags, "benchmark_out", "").empty()) {
    benchmark::RunSpecifiedBenchmarks(&display);
  } else {
    PointReporter file(reporter(value_of(flags, "benchmark_out_format", "json")));
    benchmark::RunSpecifiedBenchmarks(&display, &file);
  }
}

int measure_collectives(const tool::BenchOptions& o) {
  std::vector<std::string> flags;
  return nccl::run(o, [&] {
    start_benchmark(o, flags);
    run_and_report(flags, {"deviation", "bus_bytes_per_s"});
    benchmark::Shutdown();
  });
}

int measure(const tool::BenchOptions& o, const std::vector<Point>& points) {
  if (!cuda::available())
    throw Error("vlmest-bench", "no CUDA device can be used here",
                "run it on a machine with an NVIDIA GPU and its driver; --list works anywhere");
  Settings settings{.warm_up = {o.warm_up_ms / 1e3}, .counters = o.counters, .kernel_times = o.kernel_times};
  settings.device = o.device.empty() ? fitting_device() : std::optional(tool::find_device(o.device));
  const Device planned = settings.device ? *settings.device : tool::find_device("h200-sxm");
  const Seconds expected = expected_duration(points, planned, settings.rule);
  tell_plan(points, expected);

  std::vector<std::string> flags;
  start_benchmark(o, flags);
  Bench bench(settings);
  for (const std::string& reason : {bench.no_counters(), bench.no_kernel_times()})
    if (!reason.empty()) std::fprintf(stderr, "warning: %s; measuring goes on without\n", reason.c_str());
  add_context(bench);
  Progress progress(points.size(), expected);
  const std::function<Result(const Point&)> measure_point = [&](const Point& p) { return bench.measure(p); };
  register_points(points, measure_point, progress, {o.budget});

  run_and_report(flags, {"deviation", "predicted_us", "sm_clock_mhz", "throttled"});
  if (settings.counters && !bench.no_counters().empty())
    std::fprintf(stderr, "warning: counters are missing: %s\n", bench.no_counters().c_str());
  if (settings.kernel_times && !bench.no_kernel_times().empty())
    std::fprintf(stderr, "warning: kernel times are missing: %s\n", bench.no_kernel_times().c_str());
  benchmark::Shutdown();
  return tool::Exit::done;
}

int complain(int code, const std::string& what, const std::string& hint) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  if (!hint.empty()) std::fprintf(stderr, "hint: %s\n", hint.c_str());
  return code;
}

}  // namespace
}  // namespace vlmest::bench

int main(int argc, char** argv) {
  using namespace vlmest;
  using namespace vlmest::bench;
  CLI::App app{"Times of single operations on this machine's GPU"};
  app.name("vlmest-bench");
  tool::BenchOptions o;
  o.add_to(app);
  try {
    app.parse(argc, argv);
    if (o.suite == "nccl") return measure_collectives(o);
    const std::vector<Point> points = select(selection(o));
    if (o.list) return list(points, tool::find_device(o.device.empty() ? "h200-sxm" : o.device));
    return measure(o, points);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return complain(tool::Exit::usage, std::string("arguments: ") + e.what(), "see 'vlmest bench --help'");
  } catch (const Error& e) {
    // A word of the command line that is not known is wrong usage; what a list or a file holds is an input.
    const bool flag = e.where == "bench" || (e.where.starts_with("--") && e.where != "--device");
    return complain(flag ? tool::Exit::usage : tool::Exit::unreadable, e.where + ": " + e.what_happened, e.hint);
  } catch (const std::exception& e) {
    return complain(tool::Exit::internal, std::string("internal: ") + e.what(),
                    "please report this with the command line");
  }
}
