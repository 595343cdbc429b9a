// SPDX-License-Identifier: Apache-2.0
#include "log_readings.hpp"

#include <algorithm>

namespace vlmest::tool {
namespace {

/// How far into a source a NUL makes it binary.
constexpr std::size_t first_bytes = 8000;

/// Bells, backspaces, tabs, line and page ends, shifts of a terminal's character set and escape sequences are printed;
/// other control characters are not.
constexpr bool is_printed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 || (byte >= 0x07 && byte <= 0x0f) || byte == 0x1b;
}

}  // namespace

std::vector<diagnose::MemoryReading> LogReadings::read(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
  const bool nul = seen_ < first_bytes && line.substr(0, first_bytes - seen_).find('\0') != std::string_view::npos;
  seen_ += line.size() + 1;
  if (nul || !std::all_of(line.begin(), line.end(), is_printed)) {
    if (content_ != LogContent::binary) content_ = nul ? LogContent::binary : LogContent::damaged;
    return {};
  }
  reader_.line(line);
  std::vector<diagnose::MemoryReading> r;
  // Rows are taken out line by line: the reader keeps what it knows of columns and steps, and collects nothing.
  const diagnose::MemorySeries series = reader_.take();
  for (const auto& row : series.rows)
    if (row.has_memory()) r.push_back(reading_of(row));
  if (!r.empty() && !style_) style_ = series.style;
  return r;
}

void LogReadings::restart() {
  reader_ = diagnose::MemoryLogReader();
  content_ = LogContent::text;
  seen_ = 0;
}

WatchedSource LogReadings::source() const {
  const bool log = style_.value_or(diagnose::LogStyle::plain) == diagnose::LogStyle::plain;
  return {.name = log ? "training_log" : "nvidia_smi", .whole_device = !log};
}

}  // namespace vlmest::tool
