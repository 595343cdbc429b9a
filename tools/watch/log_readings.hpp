// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/watch/monitor.hpp>

#include "lines.hpp"

namespace vlmest::tool {

/// What a source is, by its bytes so far: a line with a control character that no program prints is no text, and with a
/// NUL within the first 8000 bytes the whole source is none (as git tells it: buffer_is_binary() in its
/// xdiff-interface.c). NULs at the beginning of a line are the hole that a truncated log leaves, and count for nothing.
enum class LogContent : std::uint8_t { text, damaged, binary };

/// Readings out of the lines of a log or a CSV, as they come. Lines that are no text are passed over.
class LogReadings {
 public:
  std::vector<diagnose::MemoryReading> read(std::string_view line);
  LogContent content() const { return content_; }
  /// Another file begins, with a heading of its own.
  void restart();
  /// Of what kind the first line with a reading was.
  WatchedSource source() const;

 private:
  diagnose::MemoryLogReader reader_;
  std::optional<diagnose::LogStyle> style_;
  LogContent content_ = LogContent::text;
  std::size_t seen_ = 0;  ///< bytes
};

}  // namespace vlmest::tool
