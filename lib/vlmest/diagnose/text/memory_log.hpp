// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/log_values.hpp>
#include <vlmest/diagnose/text/memory_series.hpp>
#include <vlmest/diagnose/text/nvidia_smi.hpp>
#include <vlmest/diagnose/text/serving_log.hpp>

/// Training logs: memory, loss and gradient norm over steps, from any lines that name them. Known in particular: the
/// dictionaries of the HF Trainer, torchtitan, Megatron, DeepSpeed's see_memory_usage, JSON lines, nvidia-smi.
namespace vlmest::diagnose {

namespace memory_log {

enum class Quantity : std::uint8_t {
  none,
  step,
  rank,
  loss,
  grad_norm,
  loss_scale,
  allocated,
  peak_allocated,
  reserved,
  peak_reserved,
  used,
  free,
  total
};

inline bool is(std::string_view label, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), label) != names.end();
}
inline bool ends_word(std::string_view label, std::string_view word) {
  return label == word ||
         (label.size() > word.size() && label.ends_with(word) && label[label.size() - word.size() - 1] == ' ');
}

/// A quantity by its label (plain_label).
inline Quantity quantity(std::string_view label, std::string_view after) {
  using log_prefix::has;
  const bool memory = has(label, "mem") || has(label, "alloc") || has(label, "reserved") || has(label, "cached") ||
                      has(label, "vram") || is(label, {"ma", "max ma", "ca", "max ca"});
  if (!memory) {
    if (has(label, "per ") || has(label, "time") || has(label, "skipped") || has(label, "number of"))
      return Quantity::none;
    if (ends_word(label, "step") || ends_word(label, "iteration") || ends_word(label, "iter") ||
        ends_word(label, "steps") || is(label, {"global step", "it"}))
      return Quantity::step;
    if (ends_word(label, "after") && (after.starts_with(" iteration") || after.starts_with(" step")))
      return Quantity::step;
    if (is(label, {"rank", "local rank", "global rank"})) return Quantity::rank;
    if (has(label, "eval")) return Quantity::none;
    if (ends_word(label, "loss scale") || ends_word(label, "grad scale") || ends_word(label, "loss scale to"))
      return Quantity::loss_scale;
    if (ends_word(label, "loss")) return Quantity::loss;
    if (ends_word(label, "grad norm") || ends_word(label, "gradient norm") || ends_word(label, "gnorm") ||
        ends_word(label, "grad norm total") || ends_word(label, "gradnorm"))
      return Quantity::grad_norm;
    return Quantity::none;
  }
  if (has(label, "cpu") || has(label, "host") || has(label, "delta") || has(label, "count") || has(label, "pct") ||
      has(label, "percent") || has(label, "retries") || has(label, "theoretical") || has(label, "fraction"))
    return Quantity::none;
  const bool peak = has(label, "max") || has(label, "peak");
  if (has(label, "reserved") || has(label, "cached") || ends_word(label, "ca") || has(label, "resv"))
    return peak ? Quantity::peak_reserved : Quantity::reserved;
  if (has(label, "alloc") || ends_word(label, "ma")) return peak ? Quantity::peak_allocated : Quantity::allocated;
  if (has(label, "total")) return Quantity::total;
  if (has(label, "free") || has(label, "avail")) return Quantity::free;
  if (has(label, "used") || has(label, "usage") || has(label, "vram") || ends_word(label, "mem") ||
      ends_word(label, "memory") || ends_word(label, "gib") || ends_word(label, "gb") || ends_word(label, "mb") ||
      ends_word(label, "mib") || ends_word(label, "bytes"))
    return peak ? Quantity::peak_allocated : Quantity::used;
  return peak ? Quantity::peak_allocated : Quantity::none;
}

/// "memory (MB) | allocated: 1550.4 | ..." gives the unit of the line's numbers.
inline int unit_of_line(std::string_view line) {
  for (const auto& [word, shift] :
       {std::pair<std::string_view, int>{"(MB)", 20}, {"(GB)", 30}, {"(MiB)", 20}, {"(GiB)", 30}, {"(bytes)", 0}})
    if (line.find(word) != std::string_view::npos) return shift;
  return 0;
}

inline std::optional<std::int64_t> whole(const LogValue& v) {
  if (!(v.number >= 0 && v.number < 1e15) || v.text.find('.') != std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(v.number);
}

/// The values of one line; `useful` where it says more than the step.
inline MemoryRow read_row(std::string_view line, bool& useful) {
  MemoryRow row;
  useful = false;
  const int unit = unit_of_line(line);
  each_value(line, [&](const LogValue& v) {
    const auto label = plain_label(v.label);
    if (label.empty() || label.size() > 60 || v.after.starts_with("%")) return;
    const auto q = quantity(label, v.after);
    const auto set = [&](auto& member, auto value) {
      if (!value || member) return;
      member = value;
      useful = true;
    };
    const auto size = [&] { return size_value(v, " " + label, unit); };
    switch (q) {
      case Quantity::step:
        if (!row.step) row.step = whole(v);
        break;
      case Quantity::rank:
        if (!row.rank) row.rank = whole(v);
        break;
      case Quantity::loss: set(row.loss, std::optional(v.number)); break;
      case Quantity::grad_norm: set(row.grad_norm, std::optional(v.number)); break;
      case Quantity::loss_scale: set(row.loss_scale, std::optional(v.number)); break;
      case Quantity::allocated: set(row.allocated, size()); break;
      case Quantity::peak_allocated: set(row.peak_allocated, size()); break;
      case Quantity::reserved: set(row.reserved, size()); break;
      case Quantity::peak_reserved: set(row.peak_reserved, size()); break;
      case Quantity::used: set(row.used, size()); break;
      case Quantity::free: set(row.free, size()); break;
      case Quantity::total: set(row.total, size()); break;
      case Quantity::none: break;
    }
  });
  return row;
}

/// A word that a line must hold to be read: lines without any are passed over quickly.
inline bool may_tell(std::string_view line) {
  for (std::size_t i = 0; i + 3 < line.size(); ++i) {
    const char a = lower(line[i]), b = lower(line[i + 1]), c = lower(line[i + 2]);
    if ((a == 'm' && b == 'e' && c == 'm') || (a == 'l' && b == 'o' && c == 's') ||
        (a == 'n' && b == 'o' && c == 'r') || (a == 'a' && b == 'l' && c == 'l') ||
        (a == 'm' && b == 'i' && c == 'b') || (a == 'm' && b == 'a' && c == ' ') ||
        (a == 's' && b == 't' && c == 'e') || (a == 'i' && b == 't' && c == 'e') ||
        (a == 'r' && b == 'e' && c == 's') || (a == 'b' && b == 'u' && c == 'f') ||
        (a == 'k' && b == 'v' && c == ' ') || (a == 'p' && b == 'a' && c == 'r') || (a == 'm' && b == 'a' && c == 'x'))
      return true;
  }
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
    const bool box = raw.starts_with("|");
    if (!box && !memory_log::may_tell(raw)) return;
    if (auto row = raw.find('|') == std::string_view::npos ? std::nullopt : smi_table_row(raw)) {
      if (series_.rows.empty()) series_.style = LogStyle::nvidia_smi_table;
      row->rank = smi_gpu_;
      smi_gpu_.reset();
      add(std::move(*row));
      return;
    }
    if (box) {
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
      auto row = memory_log::read_row(l.text, useful);
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
