// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include <vlmest/plan/plan.hpp>

/// Inputs that runs commonly have. The weights say which settings come first where one figure fits many. They are set
/// by hand and measured on nothing; no cause and no confidence rests on them.
namespace vlmest::diagnose::together {

/// Batches as people set them: powers of two, then other small ones.
inline double plausible_batch(std::int64_t b) {
  const double size = b <= 8 ? 1 : b <= 32 ? 0.7 : b <= 128 ? 0.4 : 0.1;
  if (b == 1) return 1;
  return size * (std::has_single_bit(static_cast<std::uint64_t>(b)) ? 0.8 : b % 4 == 0 || b <= 6 ? 0.3 : 0.1);
}

/// Lengths that trainers and engines cut or fill up to are round; what a prompt happens to have is any.
inline double plausible_length(std::int64_t s) {
  const double usual = s <= 8192 ? 1 : s <= 32768 ? 0.6 : s <= 131072 ? 0.15 : 0.02;
  if (s >= 256 && std::has_single_bit(static_cast<std::uint64_t>(s))) return usual;
  if (s % 1024 == 0) return 0.7 * usual;
  if (s % 512 == 0 || s % 1000 == 0) return 0.4 * usual;
  return (s % 128 == 0 || s % 500 == 0 ? 0.2 : 0.05) * usual;
}

/// The most plausible length of a range.
inline std::optional<std::int64_t> likely_length(std::int64_t first, std::int64_t last) {
  if (first > last) return std::nullopt;
  std::int64_t best = last;
  for (const std::int64_t step : {1024, 1000, 512, 500, 128})
    for (std::int64_t n = last / step * step; n >= first && n > 0; n -= step)
      if (plausible_length(n) > plausible_length(best)) best = n;
  return best;
}

/// Sizes of pictures that cameras, screens, scanners and resizing programs make: heights and widths in pixels.
inline constexpr std::array<PixelSize, 28> usual_sizes{
    {{224, 224},   {256, 256},   {336, 336},   {384, 384},   {448, 448},   {480, 640},   {512, 512},
     {560, 560},   {600, 800},   {640, 640},   {672, 672},   {720, 1280},  {768, 768},   {768, 1024},
     {896, 896},   {1024, 1024}, {1080, 1920}, {1120, 1120}, {1280, 1280}, {1344, 1344}, {1440, 2560},
     {1536, 1536}, {1792, 1792}, {2048, 2048}, {2160, 3840}, {2339, 1654}, {3024, 4032}, {3508, 2480}}};

}  // namespace vlmest::diagnose::together
