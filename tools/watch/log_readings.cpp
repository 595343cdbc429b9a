// SPDX-License-Identifier: Apache-2.0
#include "log_readings.hpp"

namespace vlmest::tool {

std::vector<diagnose::MemoryReading> LogReadings::read(std::string_view line) {
  reader_.line(line);
  std::vector<diagnose::MemoryReading> r;
  // Rows are taken out line by line: the reader keeps what it knows of columns and steps, and collects nothing.
  const diagnose::MemorySeries series = reader_.take();
  for (const auto& row : series.rows)
    if (row.has_memory()) r.push_back(reading_of(row));
  if (!r.empty() && !style_) style_ = series.style;
  return r;
}

void LogReadings::restart() { reader_ = diagnose::MemoryLogReader(); }

WatchedSource LogReadings::source() const {
  const bool log = style_.value_or(diagnose::LogStyle::plain) == diagnose::LogStyle::plain;
  return {.name = log ? "training_log" : "nvidia_smi", .whole_device = !log};
}

}  // namespace vlmest::tool
