// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/xla_program.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace xla_program {

/// XLA's types (xla/primitive_util.cc) and vlmest's.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 8> types{{{"f32", "fp32"},
                                                                                     {"bf16", "bf16"},
                                                                                     {"f16", "fp16"},
                                                                                     {"f64", "fp64"},
                                                                                     {"s32", "int32"},
                                                                                     {"s8", "int8"},
                                                                                     {"u8", "uint8"},
                                                                                     {"pred", "bool"}}};

/// "bf16[256000,3072]{1,0:T(8,128)(2,1)}"
inline void read_shape(std::string_view s, XlaBuffer& b) {
  const auto open = s.find('['), close = s.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
  Shape shape;
  for (auto at = open + 1; at < close;) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(s.data() + at, s.data() + close, n);
    if (error != std::errc() || n < 1 || shape.rank() == Shape::max_rank) return;
    shape.push_back(n);
    at = static_cast<std::size_t>(end - s.data()) + 1;
  }
  b.shape = shape;
  for (const auto& [theirs, ours] : types)
    if (s.substr(0, open) == theirs) b.dtype = ours;
}

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

/// What stands behind a word that a line begins with; nothing where it begins otherwise.
inline std::optional<std::string_view> behind(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  return trimmed(line.substr(word.size()));
}

inline std::optional<PrintedSize> size_behind(std::string_view line, std::string_view word) {
  const auto rest = behind(line, word);
  const auto found = rest ? size_at(*rest, 0) : std::nullopt;
  return found ? found->size : std::nullopt;
}

inline void read_line(std::string_view line, XlaProgram& p) {
  // "1. Size: 9.20G" is a buffer's first line on TPUs, "Size: 1.69GiB" on GPUs.
  while (!line.empty() && (is_digit(line.front()) || line.front() == '.')) line.remove_prefix(1);
  line = trimmed(line);
  if (const auto size = size_behind(line, "Size:")) {
    if (p.buffers.size() < 64) p.buffers.push_back({.size = *size, .op = {}, .label = {}, .shape = {}, .dtype = {}});
    return;
  }
  for (const std::string_view word : {"arguments ", "parameter allocation:"})
    if (const auto size = size_behind(line, word); size && !p.arguments) p.arguments = size;
  for (const std::string_view word : {"program ", "preallocated temp allocation:"})
    if (const auto size = size_behind(line, word); size && !p.temporaries) p.temporaries = size;
  if (p.buffers.empty()) return;
  XlaBuffer& b = p.buffers.back();
  if (const auto op = behind(line, "Operator: op_name=\""); op && b.op.empty())
    b.op = op->substr(0, std::min<std::size_t>(op->find('"'), 400));
  for (const std::string_view word : {"XLA label:", "XLA Label:"})
    if (const auto label = behind(line, word); label && b.label.empty()) b.label = label->substr(0, 200);
  if (const auto shape = behind(line, "Shape:"); shape && b.shape.rank() == 0) read_shape(*shape, b);
  if (const auto unpadded = size_behind(line, "Unpadded size:"); unpadded && unpadded->value > Bytes{})
    b.padding = static_cast<double>(b.size.value.value()) / static_cast<double>(unpadded->value.value());
}

}  // namespace xla_program

VLMEST_INLINE std::optional<XlaProgram> find_xla_program(std::string_view text) {
  auto from = std::string_view::npos;
  for (const std::string_view word : {"Total hbm usage", "Largest program allocations", "BufferAssignment stats",
                                      "Peak buffers:", "Operator: op_name="})
    from = std::min(from, text.find(word));
  if (from == std::string_view::npos) return std::nullopt;
  // The size of a buffer stands before its operator.
  from -= std::min<std::size_t>(from, 400);
  XlaProgram p;
  const auto part = text.substr(from, 256 << 10);
  for (std::size_t at = 0; at < part.size();) {
    const auto line = next_line(part, at);
    xla_program::read_line(xla_program::trimmed(line.substr(0, 2048)), p);
  }
  sort_stably(p.buffers, [](const XlaBuffer& a, const XlaBuffer& b) { return a.size.value > b.size.value; });
  if (p.buffers.empty() && !(p.arguments && p.temporaries)) return std::nullopt;
  return p;
}

}  // namespace vlmest::diagnose
