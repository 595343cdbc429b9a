// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/text/memory_log.hpp>
#include <vlmest/diagnose/watch/monitor.hpp>

#include "lines.hpp"

namespace vlmest::tool {

/// Readings out of the lines of a log or a CSV, as they come.
class LogReadings {
 public:
  std::vector<diagnose::MemoryReading> read(std::string_view line);
  /// Another file begins, with a heading of its own.
  void restart();
  /// Of what kind the first line with a reading was.
  WatchedSource source() const;

 private:
  diagnose::MemoryLogReader reader_;
  std::optional<diagnose::LogStyle> style_;
};

}  // namespace vlmest::tool
