// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace vlmest::diagnose {

/// What a try says: whether it fits, and the memory of each phase of the run, where that is known.
struct Fit {
  bool fits = false;
  std::optional<std::array<double, 3>> bytes;
};

/// Where a line through two tries meets the limit, of the phase that meets it first: with small n the largest phase may
/// be one that does not grow (an optimizer's step), though another one will have overtaken it at the limit.
struct MemoryLines {
  struct Point {
    std::int64_t n = 0;
    std::array<double, 3> bytes{};
  };
  std::optional<Point> a, b;  ///< the last two tries with known memory

  void add(const Point& p) {
    a = b;
    b = p;
  }
  std::optional<double> guess(double limit) const {
    if (!a || !b || a->n == b->n) return std::nullopt;
    std::optional<double> r;
    for (std::size_t i = 0; i < b->bytes.size(); ++i) {
      const double slope = (b->bytes[i] - a->bytes[i]) / static_cast<double>(b->n - a->n);
      if (!(slope > 0)) continue;
      const double n = static_cast<double>(b->n) + (limit - b->bytes[i]) / slope;
      r = r ? std::min(*r, n) : n;
    }
    return r;
  }
};

/// The largest n of least .. most for which `attempt(n)` fits, and nothing where `least` does not. Memory grows with n
/// but for small steps back, which come from rounding (a mask padded to 8 columns, a segment of whole pages): so the
/// `window` values above the answer are tried too, and none of them fits. Where one does, the search goes on from there
/// for as long as one of `window` neighbours fits: of a mask that is padded, whole groups may fit long after other
/// values do not. `first` is a guess to begin from, `limit` the memory; further guesses are MemoryLines'. While
/// everything fits, no try is more than `growth` times as large as one that did: lines through small values, where what
/// grows is hidden by what does not, lead far beyond the limit.
template <class Attempt>
std::optional<std::int64_t> largest_that_fits(std::int64_t least, std::int64_t most, std::int64_t first, double limit,
                                              std::int64_t window, Attempt&& attempt,
                                              std::int64_t growth = std::numeric_limits<std::int64_t>::max()) {
  MemoryLines lines;
  std::vector<std::pair<std::int64_t, bool>> tried;
  const auto fits = [&](std::int64_t n) {
    for (const auto& [of, answer] : tried)
      if (of == n) return answer;
    const Fit f = attempt(n);
    if (f.bytes) lines.add({n, *f.bytes});
    tried.emplace_back(n, f.fits);
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
    if (tries % 3 != 2) {
      const auto guess = lines.guess(limit);
      if (guess && *guess > static_cast<double>(low) && *guess < static_cast<double>(high))
        n = std::clamp(static_cast<std::int64_t>(*guess), low + 1, high - 1);
    }
    if (high > most && low > 0 && low <= most / growth) n = std::min(n, low * growth);
    if (n <= low) n = low + 1;
    move(n);
  }
  // Of `window` values from n on the first that fits.
  const auto near = [&](std::int64_t n) -> std::optional<std::int64_t> {
    for (const std::int64_t end = std::min(most, n + window - 1); n <= end; ++n)
      if (fits(n)) return n;
    return std::nullopt;
  };
  while (const auto more = near(low + 1)) {
    low = *more;
    std::int64_t step = window;
    for (; step <= most - low; step *= 2) {
      const auto further = near(low + step);
      if (!further) break;
      low = *further;
    }
    for (; step >= window; step /= 2)
      if (const auto further = step <= most - low ? near(low + step) : std::nullopt) low = *further;
  }
  return low;
}

}  // namespace vlmest::diagnose
