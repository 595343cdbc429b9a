// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest {

/// What right- or left-padding to the longest sequence of a batch costs, in LLM positions.
struct BatchPadding {
  std::int64_t sequences = 0;
  std::int64_t batch = 0;    ///< sequences per batch; the last batch may hold fewer
  std::int64_t tokens = 0;   ///< positions that hold a token
  std::int64_t padded = 0;   ///< positions computed when batches are filled in the order given
  std::int64_t grouped = 0;  ///< the same when sequences of similar length share a batch

  static constexpr double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }
  /// Shares of the computed positions that hold nothing, in the order given and grouped by size.
  constexpr double wasted() const { return share(padded - tokens, padded); }
  constexpr double wasted_grouped() const { return share(grouped - tokens, grouped); }
  /// Positions that grouping saves.
  constexpr std::int64_t saved() const { return padded - grouped; }
};

/// Positions of batches of `batch` sequences filled in order, each padded to its own longest one.
constexpr std::int64_t padded_tokens(std::span<const std::int64_t> lengths, std::int64_t batch) {
  std::int64_t sum = 0;
  const auto step = static_cast<std::size_t>(batch);
  for (std::size_t i = 0; i < lengths.size(); i += step) {
    const auto part = lengths.subspan(i, std::min(step, lengths.size() - i));
    const auto longest = *std::max_element(part.begin(), part.end());
    sum = checked_add(sum, checked_mul(static_cast<std::int64_t>(part.size()), longest));
  }
  return sum;
}

/// The least that batches of these sizes can compute: neighbours by length share a batch, and the short batch, if the
/// division leaves one, stands where it costs least. `sorted` falls.
constexpr std::int64_t grouped_tokens(std::span<const std::int64_t> sorted, std::int64_t batch) {
  const auto n = static_cast<std::int64_t>(sorted.size());
  const auto full = n / batch, rest = n % batch;
  if (rest == 0) return padded_tokens(sorted, batch);
  const auto longest_at = [sorted](std::int64_t i) { return sorted[static_cast<std::size_t>(i)]; };
  auto cost = checked_mul(rest, longest_at(0));  // the short batch first
  for (std::int64_t i = 0; i < full; ++i) cost = checked_add(cost, checked_mul(batch, longest_at(rest + i * batch)));
  auto least = cost;
  for (std::int64_t k = 0; k < full; ++k) {  // then one place further at a time
    const auto at = k * batch;
    cost += rest * (longest_at(at + batch) - longest_at(at)) + batch * (longest_at(at) - longest_at(at + rest));
    least = std::min(least, cost);
  }
  return least;
}

/// `lengths` are whole LLM lengths, text and pictures, one per sequence. Throws Error for negative lengths or a batch
/// below 1.
inline BatchPadding batch_padding(std::span<const std::int64_t> lengths, std::int64_t batch) {
  if (batch < 1) throw Error("batch", std::to_string(batch) + " sequences per batch", "give at least 1");
  BatchPadding p;
  p.sequences = static_cast<std::int64_t>(lengths.size());
  p.batch = batch;
  for (const auto n : lengths) {
    if (n < 0) throw Error("sequence length", std::to_string(n) + " tokens", "give a length of at least 0");
    p.tokens = checked_add(p.tokens, n);
  }
  p.padded = padded_tokens(lengths, batch);
  std::vector<std::int64_t> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>{});
  p.grouped = grouped_tokens(sorted, batch);
  return p;
}

}  // namespace vlmest
