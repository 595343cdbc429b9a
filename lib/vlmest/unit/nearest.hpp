// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace vlmest {

/// Letters to insert, drop or change to turn a into b (Levenshtein's distance).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// The known word that is meant by a misspelt one, or "" where none is near. Words of absurd length are not compared.
inline std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  if (word.size() > 64) return best;
  std::size_t least = std::max<std::size_t>(3, word.size() / 3 + 1);
  for (const auto k : known)
    if (const std::size_t d = edit_distance(word, k); d < least) {
      least = d;
      best = k;
    }
  return best;
}

}  // namespace vlmest
