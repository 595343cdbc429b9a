// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/log_row.hpp>
#include <vlmest/diagnose/evidence/text/log_time.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/serving_log.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

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

/// The number that a row of nvidia-smi's table begins with.
inline std::optional<std::int64_t> first_number(std::string_view s) {
  std::size_t i = 1;
  while (i < s.size() && is_blank(s[i])) ++i;
  std::int64_t n = 0;
  const auto first = i;
  while (i < s.size() && is_digit(s[i]) && i - first < 4) n = n * 10 + (s[i++] - '0');
  return i > first && i < s.size() && is_blank(s[i]) ? std::optional(n) : std::nullopt;
}

}  // namespace memory_log

VLMEST_INLINE void MemoryLogReader::line(std::string_view raw) {
  ++number_;
  std::size_t at = 0;
  do part(next_line(raw, at));
  while (at < raw.size());
}

VLMEST_INLINE void MemoryLogReader::part(std::string_view raw) {
  if (raw.size() > 1 << 16) raw = raw.substr(0, 1 << 16);
  const bool may_tell = memory_log::may_tell(raw);
  if (csv(raw, may_tell)) return;
  if (table(raw) || object(raw)) return;
  const bool bar = raw.find('|') != std::string_view::npos;
  const bool gpustat = bar && raw.starts_with("[") && raw.find(" MB |") != std::string_view::npos;
  // Rows of nvidia-smi's table end with the bar that they begin with; fairseq's lines only begin with one.
  const bool box = bar && ((raw.starts_with("|") && traceback_reader::trim(raw).ends_with('|')) || gpustat);
  if (!box && !may_tell) return;
  if (gpustat) smi_gpu_ = log_prefix::number_after(raw, "[");
  if (auto row = bar ? smi_table_row(raw) : std::nullopt) {
    if (series_.rows.empty()) series_.style = LogStyle::nvidia_smi_table;
    row->rank = smi_gpu_;
    smi_gpu_.reset();
    add(std::move(*row));
    return;
  }
  if (box && !gpustat) {
    if (const auto gpu = memory_log::first_number(raw)) smi_gpu_ = gpu;
    return;
  }
  if (!has_escapes(raw)) {
    const BareLine line = bare_line(raw);
    told(line.text, raw, line.prefix.rank);
    return;
  }
  lines_.clear();
  clean_line(raw, 0, lines_);
  for (const auto& l : lines_) told(l.text, raw, l.rank);
}

VLMEST_INLINE void MemoryLogReader::told(std::string_view text, std::string_view raw,
                                         std::optional<std::int64_t> rank) {
  const auto facts = series_.facts.size();
  add_facts(text, number_, series_.facts);
  if (text.find("CPU Virtual Memory") != std::string_view::npos) return;
  bool useful = false;
  auto row = memory_log::read_row(text, raw, quantities_, useful);
  const bool once = series_.facts.size() > facts && !row.step && !row.loss;
  if (row.step)
    step_ = row.step;
  else
    row.step = step_;
  if (!useful || once) return;
  if (!row.rank) row.rank = rank;
  row.time_s = log_time(raw);
  add(std::move(row));
}

/// A table whose heading names its columns.
VLMEST_INLINE bool MemoryLogReader::table(std::string_view raw) {
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
VLMEST_INLINE bool MemoryLogReader::object(std::string_view raw) {
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

VLMEST_INLINE bool MemoryLogReader::csv(std::string_view raw, bool may_tell) {
  // "memory." is among the words that tell.
  if (auto heading = may_tell ? smi_heading(raw) : std::nullopt) {
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

VLMEST_INLINE void MemoryLogReader::add(MemoryRow row) {
  if (seen_++ % series_.stride != 0) return;
  row.line = number_;
  series_.rows.push_back(std::move(row));
  if (series_.rows.size() < most_) return;
  for (std::size_t i = 0; 2 * i < series_.rows.size(); ++i) series_.rows[i] = std::move(series_.rows[2 * i]);
  series_.rows.resize((series_.rows.size() + 1) / 2);
  series_.stride *= 2;
}

VLMEST_INLINE MemorySeries read_memory_log(std::string_view text) {
  MemoryLogReader reader;
  // A row takes more than its line: room that is not used is not touched, rows that are moved are.
  reader.expect(text.size() / 128);
  for (std::size_t at = 0; at < text.size();) reader.line(next_counted_line(text, at));
  return reader.take();
}

}  // namespace vlmest::diagnose
