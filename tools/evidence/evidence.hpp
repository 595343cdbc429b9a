// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/run_signs.hpp>
#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

#include "evidence/read_run.hpp"

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
  std::vector<diagnose::FoundSign> signs;    ///< of a text: lines that tell what no allocator says
  std::vector<diagnose::LogFact> log_facts;  ///< of a text: what servers and trainers print once
  ReadRun run;                               ///< of a text: settings
  diagnose::Story story;                     ///< of a text: what somebody tells
  bool with_engine = false;                  ///< of a text: a trainer that rolls out with an engine
  bool other_failure = false;                ///< of a text: it ends in an error that is none of memory
  bool says_memory = false;                  ///< of a text: somebody says that memory ran out
  bool of_budget = false;                    ///< the verdict is of what an engine's log has left for its KV cache
  bool cut_short = false;                    ///< the failure is a stack without its message
};

/// Reads a file, whatever of the kinds it is; "-" is standard input. A trace is compared with `device`, or, where none
/// is given, with the shipped one that it was recorded on. Throws Error for a file that is none of them, or damaged.
Evidence read_evidence(const std::string& path, const std::optional<Device>& device);

}  // namespace vlmest::tool
