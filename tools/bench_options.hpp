// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace vlmest::tool {

/// The program that measures, beside this one or in libexec.
inline constexpr std::string_view bench_program = "vlmest-bench";

/// The command line of `vlmest bench`, which is that of the program vlmest-bench.
struct BenchOptions {
  std::vector<std::string> ops;
  std::string points;
  std::string suite;
  std::string filter;
  bool cold = false;
  bool hot = false;
  bool counters = false;
  bool kernel_times = false;
  double warm_up_ms = 0;
  double budget = 0;  ///< seconds; 0: none
  std::uint64_t seed = 2;
  bool list = false;
  std::string device;
  std::string output;
  /// Google Benchmark's own flags, as it wants them: "--benchmark_format=json".
  std::vector<std::string> benchmark_flags;

  void add_to(CLI::App& app);
};

}  // namespace vlmest::tool
