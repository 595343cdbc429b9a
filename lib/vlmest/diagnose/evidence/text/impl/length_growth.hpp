// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include <vlmest/diagnose/evidence/text/length_growth.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace length_growth {

/// The last power of two from 512 to 2^21 that stands in a line as a word.
inline std::int64_t length_in(std::string_view line) {
  std::int64_t last = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_digit(line[at])) {
      ++at;
      continue;
    }
    const auto begin = at;
    std::int64_t n = 0;
    for (; at < line.size() && is_digit(line[at]); ++at) n = std::min<std::int64_t>(n * 10 + (line[at] - '0'), 1 << 30);
    const auto is_part = [](char c) { return is_letter(c) || c == '.' || c == '_' || c == '-'; };
    const bool word = (begin == 0 || !is_part(line[begin - 1])) && (at == line.size() || !is_part(line[at]));
    if (word && n >= 512 && n <= 1 << 21 && std::has_single_bit(static_cast<std::uint64_t>(n))) last = n;
  }
  return last;
}

inline std::optional<Bytes> memory_of(const MemoryRow& r) {
  if (r.peak_allocated) return r.peak_allocated;
  if (r.allocated) return r.allocated;
  return r.used;
}

}  // namespace length_growth

VLMEST_INLINE std::optional<LengthGrowth> find_length_growth(std::string_view text,
                                                             const std::vector<MemoryRow>& rows) {
  using namespace length_growth;
  // Who measures lengths gives a few figures; a log of steps has one length.
  if (rows.size() < 3 || rows.size() > 32 || text.size() > (1 << 20)) return std::nullopt;
  LengthGrowth g;
  std::int64_t number = 0, length = 0;
  auto row = rows.begin();
  for (std::size_t at = 0; at < text.size() && row != rows.end();) {
    const auto line = next_counted_line(text, at).substr(0, 4096);
    if (++number < row->line) {
      if (const auto n = length_in(line); n > 0) length = n;
      continue;
    }
    const auto memory = memory_of(*row);
    for (; row != rows.end() && row->line <= number; ++row) {
    }
    if (!memory || length == 0) return std::nullopt;
    if (!g.at.empty() && length != 2 * g.at.back().length) return std::nullopt;
    g.at.push_back({length, *memory, number});
    length = 0;
  }
  if (g.at.size() < 3) return std::nullopt;
  g.ratio = 1e9;
  for (std::size_t i = 2; i < g.at.size(); ++i) {
    const auto bytes = [&](std::size_t k) { return static_cast<double>(g.at[k].memory.value()); };
    const double before = bytes(i - 1) - bytes(i - 2), more = bytes(i) - bytes(i - 1);
    if (before <= 0 || more <= 0) return std::nullopt;
    g.ratio = std::min(g.ratio, more / before);
  }
  return g;
}

}  // namespace vlmest::diagnose
