// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <vlmest/unit/rate.hpp>

namespace vlmest::bench {

/// What ran on the device during some calls.
struct Traced {
  Seconds busy{};                  ///< of one call: its kernels' durations added up, the median of the calls
  double kernels = 0;              ///< of one call, copies and fills included
  std::vector<std::string> names;  ///< of the first call's kernels, as the compiler spells them
};

/// The device's own time stamps of kernels, copies and fills, by CUPTI's activity records: no gaps between kernels, no
/// events in between. Needs no privileges. Recording makes launches slower, so it is switched on for `trace` alone.
class KernelTrace {
 public:
  /// Throws Error where another tool of the process records already.
  KernelTrace();

  /// `work` makes `calls` equal calls and waits for them. Throws Error where nothing was recorded.
  Traced trace(int calls, const std::function<void()>& work) const;
};

}  // namespace vlmest::bench
