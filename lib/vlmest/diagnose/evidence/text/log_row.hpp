// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <vlmest/diagnose/evidence/text/log_quantity.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// A line of a log as a row of a series.
namespace vlmest::diagnose::memory_log {

/// "memory (MB) | allocated: 1550.4 | ..." gives the unit of the line's numbers.
inline int unit_of_line(std::string_view line) {
  if (line.find('(') == std::string_view::npos) return 0;
  if (line.find("B)") == std::string_view::npos && line.find("(bytes)") == std::string_view::npos) return 0;
  for (const auto& [word, shift] :
       {std::pair<std::string_view, int>{"(MB)", 20}, {"(GB)", 30}, {"(MiB)", 20}, {"(GiB)", 30}, {"(bytes)", 0}})
    if (line.find(word) != std::string_view::npos) return shift;
  return 0;
}

inline std::optional<std::int64_t> whole(const LogValue& v) {
  if (!(v.number >= 0 && v.number < 1e15) || v.text.find('.') != std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(v.number);
}

/// Collects the values of a row; the first of a quantity counts.
class RowBuilder {
 public:
  explicit RowBuilder(int unit) : unit_(unit) {}

  /// A value under a label (plain_label).
  void add(Quantity q, std::string_view label, const LogValue& v) {
    const auto size = [&] { return size_value(v, label, unit_); };
    switch (q) {
      case Quantity::step:
        if (!row_.step) row_.step = whole(v);
        break;
      case Quantity::rank:
        if (!row_.rank) row_.rank = whole(v);
        break;
      case Quantity::loss:
        // "loss" itself comes before parts of it, such as "bbox_loss", wherever it stands.
        if (const bool whole_loss = is(label, {"loss", "total loss", "train loss"}); whole_loss && !whole_loss_) {
          row_.loss.reset();
          whole_loss_ = true;
        }
        set(row_.loss, std::optional(v.number));
        break;
      case Quantity::grad_norm: set(row_.grad_norm, std::optional(v.number)); break;
      case Quantity::loss_scale: set(row_.loss_scale, std::optional(v.number)); break;
      case Quantity::allocated: set(row_.allocated, size()); break;
      case Quantity::peak_allocated: set(row_.peak_allocated, size()); break;
      case Quantity::active: set(active_, size()); break;
      case Quantity::peak_active: set(peak_active_, size()); break;
      case Quantity::reserved: set(row_.reserved, size()); break;
      case Quantity::peak_reserved: set(row_.peak_reserved, size()); break;
      case Quantity::used: set(row_.used, size()); break;
      case Quantity::free: set(row_.free, size()); break;
      case Quantity::total: set(row_.total, size()); break;
      case Quantity::none: break;
    }
  }
  bool useful() const { return useful_; }  ///< it says more than the step
  MemoryRow take() {
    if (!row_.allocated) row_.allocated = active_;
    if (!row_.peak_allocated) row_.peak_allocated = peak_active_;
    return std::move(row_);
  }

 private:
  template <class T>
  void set(std::optional<T>& member, std::optional<T> value) {
    if (!value || member) return;
    member = value;
    useful_ = true;
  }

  MemoryRow row_;
  std::optional<Bytes> active_, peak_active_;
  int unit_;
  bool useful_ = false, whole_loss_ = false;
};

/// "used/total (GB): 10.25/60.96": the second number, in the unit of the first.
std::optional<LogValue> behind_slash(const LogValue& v);

/// The values of one line; `useful` where it says more than the step. `raw`: the line with its prefix.
MemoryRow read_row(std::string_view line, std::string_view raw, KnownQuantities& quantities, bool& useful);

}  // namespace vlmest::diagnose::memory_log

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_row.hpp>
#endif
