// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <vlmest/diagnose/watch/monitor.hpp>

namespace vlmest::tool {

enum class WatchFormat { text, json, prometheus };

struct WatchOptions {
  std::string file;  ///< a log or a CSV, "-" for standard input; empty: NVML
  std::chrono::milliseconds interval{1000};
  bool once = false;                  ///< report what is there now, and end
  std::optional<std::uint16_t> port;  ///< serve metrics on 127.0.0.1
  WatchFormat format = WatchFormat::text;
  std::string output;  ///< a file instead of standard output; Prometheus' format replaces it at each update
  diagnose::MemoryExpectation expected;
};

/// Watches until the input ends, a signal asks to end, or nobody reads the output any more. Throws Error where what is
/// watched cannot be read or, when it ends, held no reading of memory.
void watch(const WatchOptions& options);

}  // namespace vlmest::tool
