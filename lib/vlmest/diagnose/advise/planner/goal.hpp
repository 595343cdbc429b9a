// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/nn/sequence_layout.hpp>

namespace vlmest::diagnose {

/// What a plan is to reach within the memory.
enum class Goal : std::uint8_t { max_batch, max_seq, max_pixels, max_frames, fastest };

/// As `--goal` takes them.
inline constexpr std::array<std::string_view, 5> goal_names{"max-batch", "max-seq", "max-pixels", "max-frames",
                                                            "fastest"};
constexpr std::string_view name(Goal g) { return goal_names[static_cast<std::size_t>(g)]; }

/// The number that a goal makes as large as it can: sequences of a batch, tokens of a sequence, rows of pixels of an
/// image, whose columns keep the proportion that was asked for, frames of a video that are handed over.
struct SearchVariable {
  std::int64_t least = 1, most = 1, asked = 1;
  std::int64_t window = 3;  ///< values above an answer that are tried too
  /// Of a try against one that fits, before one does not: of a batch, of which every sequence may add nodes to the
  /// graph, so that tries far beyond the limit take longer than all others.
  std::int64_t growth = std::numeric_limits<std::int64_t>::max();
};

/// Sides beyond which no processor's limit lies (nn/tokens: 16,777,216 pixels at most as released).
inline constexpr std::int64_t most_rows = std::int64_t{1} << 14;

inline std::int64_t columns(ImageSize asked, std::int64_t rows) {
  const double c = static_cast<double>(rows) * static_cast<double>(asked.width) / static_cast<double>(asked.height);
  return std::max<std::int64_t>(1, std::llround(c));
}

void turn(Settings& s, Goal goal, std::int64_t n);

/// The variable of a goal. A processor that gives every image the same tokens has none for pixels. Throws Error for
/// that, where a run has no images, and for frames of a video that is sampled.
SearchVariable search_variable(const Settings& s, Goal goal);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/planner/impl/goal.hpp>
#endif
