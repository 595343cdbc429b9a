// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/log_row.hpp>
#include <vlmest/diagnose/evidence/text/log_table.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/log_time.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/nvidia_smi.hpp>
#include <vlmest/diagnose/evidence/text/serving_log.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>

/// Training logs: memory, loss and gradient norm over steps, from any lines that name them. Known in particular: the
/// dictionaries of the HF Trainer, torchtitan, Megatron, DeepSpeed's see_memory_usage, JSON lines, nvidia-smi.
namespace vlmest::diagnose {

namespace memory_log {

/// Beginnings of words of which a line must hold one to be read: lines without any are passed over quickly.
inline constexpr std::array<std::string_view, 14> telling{"gpu", "mem", "los", "nor", "all", "mib", "ma ",
                                                          "ste", "ite", "res", "buf", "kv ", "par", "max"};
inline bool may_tell(std::string_view line) {
  static constexpr auto starts = WordStarts::make(telling, true);
  for (std::size_t i = 0; i + 3 < line.size(); ++i)
    if (starts(line, i) != 0) return true;
  return false;
}

}  // namespace memory_log

/// Reads a log line by line, from a whole text or as it grows. Memory is bounded: `most` rows are kept, then every
/// second one, and so on.
class MemoryLogReader {
 public:
  explicit MemoryLogReader(std::size_t most = std::size_t{1} << 18) : most_(std::max<std::size_t>(most, 16)) {}

  /// One line, without its end; it may hold several of a progress bar. Never throws for what it holds.
  void line(std::string_view raw) {
    ++number_;
    std::size_t at = 0;
    do part(next_line(raw, at));
    while (at < raw.size());
  }

  const MemorySeries& series() const { return series_; }
  MemorySeries take() { return std::move(series_); }

 private:
  void part(std::string_view raw) {
    if (raw.size() > 1 << 16) raw = raw.substr(0, 1 << 16);
    if (csv(raw)) return;
    if (table(raw) || object(raw)) return;
    const bool gpustat = raw.starts_with("[") && raw.find(" MB |") != std::string_view::npos;
    // Rows of nvidia-smi's table end with the bar that they begin with; fairseq's lines only begin with one.
    const bool box = (raw.starts_with("|") && traceback_reader::trim(raw).ends_with('|')) || gpustat;
    if (!box && !memory_log::may_tell(raw)) return;
    if (gpustat) smi_gpu_ = log_prefix::number_after(raw, "[");
    if (auto row = raw.find('|') == std::string_view::npos ? std::nullopt : smi_table_row(raw)) {
      if (series_.rows.empty()) series_.style = LogStyle::nvidia_smi_table;
      row->rank = smi_gpu_;
      smi_gpu_.reset();
      add(std::move(*row));
      return;
    }
    if (box && !gpustat) {
      if (const auto gpu = first_number(raw)) smi_gpu_ = gpu;
      return;
    }
    const auto time = log_time(raw);
    lines_.clear();
    clean_line(raw, 0, lines_);
    for (const auto& l : lines_) {
      const auto facts = series_.facts.size();
      add_facts(l.text, number_, series_.facts);
      if (l.text.find("CPU Virtual Memory") != std::string::npos) continue;
      bool useful = false;
      auto row = memory_log::read_row(l.text, raw, useful);
      const bool once = series_.facts.size() > facts && !row.step && !row.loss;
      if (row.step)
        step_ = row.step;
      else
        row.step = step_;
      if (!useful || once) continue;
      if (!row.rank) row.rank = l.rank;
      row.time_s = time;
      add(std::move(row));
    }
  }

  /// A table whose heading names its columns.
  bool table(std::string_view raw) {
    if (auto heading = table_heading(raw)) {
      table_ = std::move(heading);
      return true;
    }
    if (!table_) return false;
    auto row = table_row(raw, *table_);
    if (!row) return false;
    if (row->step)
      step_ = row->step;
    else
      row->step = step_;
    add(std::move(*row));
    return true;
  }
  /// JSON that is written over several lines, a key each, as in trainer_state.json: its innermost object is one line.
  bool object(std::string_view raw) {
    const auto text = traceback_reader::trim(raw);
    if (text.ends_with('{') && (text.size() == 1 || text.ends_with(": {"))) {
      object_ = "{";
      return false;
    }
    if (object_.empty()) return false;
    const bool end = text == "}" || text == "},";
    if (!end && (!text.starts_with('"') || object_.size() > 8192)) {
      object_.clear();
      return false;
    }
    if (!end) {
      object_ += text;
      return true;
    }
    const std::string whole = std::exchange(object_, {});
    part(whole);
    return true;
  }
  bool csv(std::string_view raw) {
    if (auto heading = smi_heading(raw)) {
      columns_ = heading;
      if (series_.rows.empty()) series_.style = LogStyle::nvidia_smi_csv;
      return true;
    }
    // Without a heading the first lines of the file decide.
    if (!columns_ && number_ <= 3 && series_.rows.empty()) {
      columns_ = smi_columns_of(raw);
      if (columns_) series_.style = LogStyle::nvidia_smi_csv;
    }
    if (!columns_) return false;
    auto row = smi_row(raw, *columns_);
    if (!row) return false;
    add(std::move(*row));
    return true;
  }
  static std::optional<std::int64_t> first_number(std::string_view s) {
    std::size_t i = 1;
    while (i < s.size() && is_blank(s[i])) ++i;
    std::int64_t n = 0;
    const auto first = i;
    while (i < s.size() && is_digit(s[i]) && i - first < 4) n = n * 10 + (s[i++] - '0');
    return i > first && i < s.size() && is_blank(s[i]) ? std::optional(n) : std::nullopt;
  }
  void add(MemoryRow row) {
    if (seen_++ % series_.stride != 0) return;
    row.line = number_;
    series_.rows.push_back(std::move(row));
    if (series_.rows.size() < most_) return;
    for (std::size_t i = 0; 2 * i < series_.rows.size(); ++i) series_.rows[i] = std::move(series_.rows[2 * i]);
    series_.rows.resize((series_.rows.size() + 1) / 2);
    series_.stride *= 2;
  }

  std::size_t most_;
  MemorySeries series_;
  std::optional<SmiColumns> columns_;
  std::optional<LogTable> table_;
  std::string object_;
  std::optional<std::int64_t> step_, smi_gpu_;
  std::vector<LogLine> lines_;
  std::int64_t number_ = 0, seen_ = 0;
};

/// The series of a whole text.
inline MemorySeries read_memory_log(std::string_view text) {
  MemoryLogReader reader;
  for (std::size_t at = 0; at < text.size();) reader.line(next_counted_line(text, at));
  return reader.take();
}

}  // namespace vlmest::diagnose
