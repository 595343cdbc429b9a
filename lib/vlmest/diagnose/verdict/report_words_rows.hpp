// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/verdict/report_words_table.hpp>

/// The table of words by cause, read.
namespace vlmest::diagnose {
namespace report_words_table {

inline constexpr std::size_t kinds = learnt.size();

struct Row {
  int in = 0;                ///< reports
  std::string_view letters;  ///< one for each cause

  /// How much the word tells at all: of what stands in few reports more.
  double rarity() const { return std::log(static_cast<double>(reports) / in); }
  /// For the cause of that number.
  double weight(std::size_t cause) const {
    const char c = letters[cause];
    return step * (c <= 'Z' ? c - 'A' - 26 : c - 'a');
  }
};

inline std::unordered_map<std::string_view, Row> rows() {
  std::unordered_map<std::string_view, Row> r;
  std::string_view rest = words;
  const auto next = [&rest] {
    const auto end = rest.find(' ');
    const std::string_view w = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return w;
  };
  while (!rest.empty()) {
    const std::string_view word = next(), in = next();
    Row row;
    std::from_chars(in.data(), in.data() + in.size(), row.in);
    row.letters = next();
    r.emplace(word, row);
  }
  return r;
}

inline bool knows(Cause c) {
  return std::any_of(learnt.begin(), learnt.end(), [&](const Learnt& l) { return l.cause == c; });
}

/// Shares of one whole.
inline std::array<double, kinds> shares(std::array<double, kinds> z) {
  const double most = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (double& x : z) sum += x = std::exp(x - most);
  for (double& x : z) x /= sum;
  return z;
}

}  // namespace report_words_table

}  // namespace vlmest::diagnose
