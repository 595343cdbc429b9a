// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <vlmest/analysis/op_time.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// Why a shape costs more than its arithmetic.
enum class Cliff : std::uint8_t { alignment, head_size, tail };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Cliff>{
    "rows that begin at no multiple of 16 bytes", "a head padded to the next tile", "a last wave of few tiles"};

/// A shape nearby that costs less than its share.
struct FasterShape {
  Cliff why = Cliff::alignment;
  std::string what;  ///< "k 3424 for 3420"
  Seconds saved{};   ///< of one execution
};

namespace faster_shape_detail {

inline std::string change(const char* what, std::int64_t to, std::int64_t from) {
  return std::string(what) + " " + std::to_string(to) + " for " + std::to_string(from);
}

inline std::optional<FasterShape> aligned(const Matmul& o, const Device& d, Seconds now) {
  if (!is_half(o.dtype) || tiled::row_alignment(o) >= 16) return std::nullopt;
  const auto aligned = [](std::int64_t size) { return tiled::ceil_div(size, 8) * 8; };
  const std::int64_t a = o.lda > 0 ? o.lda : o.k, b = o.ldb > 0 ? o.ldb : o.k;
  Matmul better = o;
  better.lda = aligned(a);
  better.ldb = aligned(b);
  better.n = aligned(o.n);
  // The sizes along which rows lie; tokens that lie side by side need no such number.
  if (a == o.k || b == o.k) better.k = aligned(o.k);
  if (a == o.m) better.m = aligned(o.m);
  FasterShape f{Cliff::alignment, "", {now.value - matmul_time(better, d).time.value}};
  const auto add = [&f](const char* what, std::int64_t to, std::int64_t from) {
    if (to != from) f.what += (f.what.empty() ? "" : ", ") + change(what, to, from);
  };
  add("m", better.m, o.m);
  add("n", better.n, o.n);
  add("k", better.k, o.k);
  if (f.what.empty()) return std::nullopt;
  return f;
}

/// Fewer rows, so that the last wave is gone: what the further rows cost beyond their share is lost.
inline std::optional<FasterShape> full_waves(const Matmul& o, const Device& d, Seconds now) {
  std::optional<FasterShape> best;
  for (const std::int64_t tile : {64, 128, 192, 256}) {
    const std::int64_t fewer = (o.m - 1) / tile * tile;
    if (fewer < o.m / 2 || fewer == 0) continue;
    Matmul shorter = o;
    shorter.m = fewer;
    const double share = matmul_time(shorter, d).time.value * static_cast<double>(o.m) / static_cast<double>(fewer);
    const Seconds saved{now.value - share};
    if (!best || saved > best->saved) best = FasterShape{Cliff::tail, change("m", fewer, o.m), saved};
  }
  return best;
}

inline std::optional<FasterShape> of(const Matmul& o, const Device& d, Seconds now) {
  if (auto f = aligned(o, d, now)) return f;
  return full_waves(o, d, now);
}
inline std::optional<FasterShape> of(const Attention& o, const Device& d, Seconds now) {
  const std::int64_t padded = fused_attention::padded_head_dim(o.head_dim);
  if (padded == o.head_dim || o.backend == AttentionBackend::math || padded < 128) return std::nullopt;
  Attention narrow = o;
  narrow.head_dim = narrow.v_dim = padded / 2;
  // What the padding costs: the narrower tile's time for as many columns as there are.
  const double share = attention_time(narrow, d, d.efficiency.attention).time.value * static_cast<double>(o.head_dim) /
                       static_cast<double>(padded / 2);
  return FasterShape{Cliff::head_size,
                     "head size " + std::to_string(padded / 2) + " or " + std::to_string(padded) + " for " +
                         std::to_string(o.head_dim),
                     {now.value - share}};
}
template <class Other>
std::optional<FasterShape> of(const Other&, const Device&, Seconds) {
  return std::nullopt;
}

}  // namespace faster_shape_detail

/// A shape near this one that would save more than a tenth of its time, or nothing.
inline std::optional<FasterShape> faster_shape(const Op& op, const Device& d) {
  const Seconds now = op_time(op, d).time;
  auto f = std::visit([&](const auto& o) { return faster_shape_detail::of(o, d, now); }, op);
  if (!f || f->saved.value < 0.1 * now.value) return std::nullopt;
  return f;
}

}  // namespace vlmest
