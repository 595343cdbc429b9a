// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace vlmest::diagnose {

/// What a try says: whether it fits, and by what memory it is measured, where that is known.
struct Fit {
  bool fits = false;
  std::optional<double> bytes;
};

/// The largest n of least .. most for which `attempt(n)` fits, and nothing where `least` does not. Memory grows with n
/// but for small steps back, which come from rounding (a mask padded to 8 columns, a segment of whole pages): so the
/// `window` values above the answer are tried too, and none of them fits. `first` is a guess to begin from, `limit` the
/// memory: the next guess is where a line through two tries meets it.
template <class Attempt>
std::optional<std::int64_t> largest_that_fits(std::int64_t least, std::int64_t most, std::int64_t first, double limit,
                                              std::int64_t window, Attempt&& attempt) {
  struct Point {
    std::int64_t n;
    double bytes;
  };
  std::optional<Point> a, b;  // the last two tries with known memory
  const auto fits = [&](std::int64_t n) {
    const Fit f = attempt(n);
    if (f.bytes) {
      a = b;
      b = Point{n, *f.bytes};
    }
    return f.fits;
  };
  std::int64_t low = least - 1, high = most + 1;  // low fits (or is below all), high does not
  const auto move = [&](std::int64_t n) { (fits(n) ? low : high) = n; };
  move(std::clamp(first, least, most));
  if (low < least && high > least) {
    move(least);
    if (low < least) return std::nullopt;
  }
  if (low < least) return std::nullopt;
  for (int tries = 0; low + 1 < high; ++tries) {
    std::int64_t n = high > most ? std::min(low > most / 2 ? most : low * 2, most) : low + (high - low) / 2;
    // Lines guess well, but may creep up on the answer from one side: every third try halves instead.
    if (a && b && a->n != b->n && tries % 3 != 2) {
      const double slope = (b->bytes - a->bytes) / static_cast<double>(b->n - a->n);
      const double guess = static_cast<double>(b->n) + (limit - b->bytes) / slope;
      if (slope > 0 && guess > static_cast<double>(low) && guess < static_cast<double>(high))
        n = std::clamp(static_cast<std::int64_t>(guess), low + 1, high - 1);
    } else if (tries % 3 == 2 && high > most) {
      n = std::min(low > most / 2 ? most : low * 2, most);
    }
    if (n <= low) n = low + 1;
    move(n);
  }
  for (std::int64_t n = low + 2; n <= std::min(most, low + window); ++n)
    if (fits(n)) low = n;
  return low;
}

}  // namespace vlmest::diagnose
