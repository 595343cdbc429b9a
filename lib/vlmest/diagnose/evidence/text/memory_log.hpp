// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_quantity.hpp>
#include <vlmest/diagnose/evidence/text/log_table.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/nvidia_smi.hpp>

/// Training logs: memory, loss and gradient norm over steps, from any lines that name them. Known in particular: the
/// dictionaries of the HF Trainer, torchtitan, Megatron, DeepSpeed's see_memory_usage, JSON lines, nvidia-smi.
namespace vlmest::diagnose {

/// Reads a log line by line, from a whole text or as it grows. Memory is bounded: `most` rows are kept, then every
/// second one, and so on.
class MemoryLogReader {
 public:
  explicit MemoryLogReader(std::size_t most = std::size_t{1} << 18) : most_(std::max<std::size_t>(most, 16)) {}

  /// One line, without its end; it may hold several of a progress bar. Never throws for what it holds.
  void line(std::string_view raw);
  /// Makes room for about so many rows.
  void expect(std::size_t rows) { series_.rows.reserve(std::min(rows, most_)); }

  const MemorySeries& series() const { return series_; }
  MemorySeries take() { return std::move(series_); }

 private:
  void part(std::string_view raw);
  /// What a line tells, `raw` without its prefix.
  void told(std::string_view text, std::string_view raw, std::optional<std::int64_t> rank);
  bool table(std::string_view raw);
  bool object(std::string_view raw);
  bool csv(std::string_view raw, bool may_tell);
  void add(MemoryRow row);

  std::size_t most_;
  MemorySeries series_;
  std::optional<SmiColumns> columns_;
  std::optional<LogTable> table_;
  std::string object_;
  std::optional<std::int64_t> step_, smi_gpu_;
  memory_log::KnownQuantities quantities_;
  std::vector<LogLine> lines_;
  std::int64_t number_ = 0, seen_ = 0;
};

/// The series of a whole text.
MemorySeries read_memory_log(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/memory_log.hpp>
#endif
