// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/inversion/failure.hpp>
#include <vlmest/diagnose/trace/slow_run.hpp>
#include <vlmest/diagnose/verdict.hpp>

namespace vlmest::tool {

/// What one file says.
struct Evidence {
  std::string file;
  std::string kind;  ///< as `evidence[].kind` of `vlmest diagnose`: oom_message, snapshot, trace, ...
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  std::vector<std::string> lines;            ///< the same for a reader, a line each
  std::optional<diagnose::Failure> failure;  ///< an allocation that failed, or a peak
  bool out_of_memory = false;                ///< it did fail
  std::optional<diagnose::Verdict> verdict;  ///< of evidence that is no failed allocation: a leak, a slow run
  std::optional<diagnose::SlowRun> slow;     ///< of a trace
};

/// Reads a file, whatever of the kinds it is; "-" is standard input. A trace is compared with `device`, or, where none
/// is given, with the shipped one that it was recorded on. Throws Error for a file that is none of them, or damaged.
Evidence read_evidence(const std::string& path, const std::optional<Device>& device);

}  // namespace vlmest::tool
