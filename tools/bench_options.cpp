// SPDX-License-Identifier: Apache-2.0
#include "bench_options.hpp"

#include <array>

#include "options.hpp"

namespace vlmest::tool {
namespace {

/// Those of Google Benchmark 1.7 that do not clash with ours (docs/user_guide.md there); not shown in --help.
constexpr std::array passed_on{"benchmark_format",
                               "benchmark_out",
                               "benchmark_out_format",
                               "benchmark_color",
                               "benchmark_repetitions",
                               "benchmark_context",
                               "benchmark_report_aggregates_only",
                               "benchmark_counters_tabular"};

}  // namespace

void BenchOptions::add_to(CLI::App& app) {
  app.add_option("ops", ops, "ops, such as linear or sdpa/flash: OP or OP/VARIANT; of nccl all_reduce and others [all]")
      ->type_name("OP");
  app.add_option("--points", points, "measure the ops of a list as 'vlmest op' reads it; - for standard input")
      ->type_name("FILE");
  add_choice(app, "--suite", suite, "which points are measured [quick]",
             {"quick", "ceilings", "calibrate", "heldout", "nccl"})
      ->excludes("--points");
  app.add_option("--filter", filter, "only points whose name holds this regular expression")->type_name("REGEX");
  app.add_flag("--cold", cold, "operands from DRAM, whatever the suite says");
  app.add_flag("--hot", hot, "operands from the L2 cache as far as they fit, calls in a CUDA graph");
  app.add_flag("--counters", counters, "also DRAM bytes, L2 bytes and tensor operations, by CUPTI");
  app.add_flag("--kernel-times", kernel_times, "also the kernels' own durations, by CUPTI");
  add_decimal(app, "--warm-up", warm_up_ms, "milliseconds that each point runs before it is timed [0]", 0, 100000,
              "MS");
  add_decimal(app, "--budget", budget, "seconds after which the points that remain are skipped [none]", 0, 100000,
              "SECONDS");
  add_whole(app, "--seed", seed, "of the random points of the suite heldout [2]", 0);
  app.add_flag("--list", list, "print the points' names instead of measuring");
  app.add_option("--device", device, "a shipped device or a file to predict with [the one that fits]")
      ->type_name("NAME|FILE");
  app.add_option("--output", output, "write Google Benchmark's JSON there")->type_name("FILE");
  for (const char* flag : passed_on)
    app.add_option_function<std::string>(
           std::string("--") + flag,
           [this, flag](const std::string& value) {
             benchmark_flags.push_back(std::string("--") + flag + "=" + value);
           },
           "Google Benchmark's")
        ->group("");
}

}  // namespace vlmest::tool
