// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include <vlmest/diagnose/watch/monitor.hpp>

/// What `vlmest watch` says of the GPUs that it watches.
namespace vlmest::tool {

/// Where readings come from.
struct WatchedSource {
  std::string name;           ///< training_log, nvidia_smi or nvml: the metrics' label `source`
  bool whole_device = false;  ///< what is used is that of all processes, as the driver counts it
};

/// One line for people, without its end.
std::string text_line(const diagnose::WatchedMemory& gpu, const WatchedSource& source,
                      const diagnose::MemoryExpectation& expected);
/// One JSON object, on one line without its end. What is not known is left out.
std::string json_line(const diagnose::WatchedMemory& gpu, const WatchedSource& source,
                      const diagnose::MemoryExpectation& expected);
/// All GPUs in Prometheus' text format.
std::string metrics_text(std::span<const diagnose::WatchedMemory> gpus, const WatchedSource& source,
                         const diagnose::MemoryExpectation& expected);

}  // namespace vlmest::tool
