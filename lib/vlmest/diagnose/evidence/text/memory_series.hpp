// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/printed_size.hpp>

namespace vlmest::diagnose {

/// What a line of a log says about a moment of a run; what it does not say is empty.
struct MemoryRow {
  std::optional<std::int64_t> step;  ///< of this line, else of the last line that gave one
  std::optional<double> time_s;  ///< of the line's time stamp, seconds from 1970 (from midnight where no date is given)
  std::optional<Bytes> allocated;  ///< by tensors
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> reserved;  ///< by the allocator
  std::optional<Bytes> peak_reserved;
  std::optional<Bytes> used;  ///< of the device, or where the log says no more than "memory"
  std::optional<Bytes> free;
  std::optional<Bytes> total;
  std::optional<double> loss, grad_norm, loss_scale;  ///< may be NaN or infinite
  std::optional<std::int64_t> rank;                   ///< or the GPU of an nvidia-smi line
  std::int64_t line = 0;                              ///< from 1
  bool has_memory() const { return allocated || peak_allocated || reserved || peak_reserved || used || free; }
};

/// A figure that a program prints once: "weights", "kv_cache", "activation_peak", ...; bytes or a plain number.
struct LogFact {
  std::string name;
  std::optional<PrintedSize> size;
  double number = 0;
  std::int64_t line = 0;
};

enum class LogStyle : std::uint8_t { plain, nvidia_smi_csv, nvidia_smi_table };

/// The rows of a log in their order. Logs with more rows than fit are thinned out evenly: every `stride`-th row is
/// kept.
struct MemorySeries {
  LogStyle style = LogStyle::plain;
  std::vector<MemoryRow> rows;
  std::vector<LogFact> facts;
  std::int64_t stride = 1;
};

/// Points of a quantity over steps: x is the row's step where all rows that have the quantity give growing ones, else
/// their number; y is what `get` returns, an optional of Bytes or of double.
template <class Get>
std::vector<std::pair<double, double>> points(const MemorySeries& s, Get get) {
  std::vector<std::pair<double, double>> out;
  bool steps = true;
  double last = 0;
  for (const auto& r : s.rows) {
    const auto v = get(r);
    if (!v) continue;
    double y = 0;
    if constexpr (requires { v->value(); })
      y = static_cast<double>(v->value());
    else
      y = *v;
    const double x = r.step ? static_cast<double>(*r.step) : 0;
    steps = steps && r.step && (out.empty() || x > last);
    last = x;
    out.emplace_back(x, y);
  }
  if (!steps)
    for (std::size_t i = 0; i < out.size(); ++i) out[i].first = static_cast<double>(i) * static_cast<double>(s.stride);
  return out;
}

}  // namespace vlmest::diagnose
