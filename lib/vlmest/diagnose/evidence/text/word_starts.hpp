// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <vlmest/diagnose/evidence/text/size_text.hpp>

namespace vlmest::diagnose {

/// Which of up to 64 words may begin at a place of a text, by their first three characters: one look into three tables
/// where a search for each word would read the text again. Words of two characters are none.
struct WordStarts {
  std::array<std::array<std::uint64_t, 256>, 3> of{};

  template <class Words>
  static consteval WordStarts make(const Words& words, bool any_case) {
    static_assert(std::tuple_size_v<Words> <= 64);
    WordStarts w;
    for (std::size_t i = 0; i < words.size(); ++i) w.add(i, words[i], any_case);
    return w;
  }
  constexpr void add(std::size_t i, std::string_view word, bool any_case) {
    for (std::size_t k = 0; k < 3; ++k) {
      const char c = word.at(k);
      of[k][static_cast<unsigned char>(c)] |= std::uint64_t{1} << i;
      if (any_case && c >= 'a' && c <= 'z') of[k][static_cast<unsigned char>(c - 'a' + 'A')] |= std::uint64_t{1} << i;
    }
  }

  /// A bit for each word; `at + 3` must not be beyond the text.
  std::uint64_t operator()(std::string_view text, std::size_t at) const {
    return of[0][static_cast<unsigned char>(text[at])] & of[1][static_cast<unsigned char>(text[at + 1])] &
           of[2][static_cast<unsigned char>(text[at + 2])];
  }
};

/// Many words, found in one pass over a text.
template <std::size_t N>
class WordScan {
 public:
  consteval explicit WordScan(const std::array<std::string_view, N>& words) : words_(words) {
    for (std::size_t i = 0; i < N; ++i) {
      starts_[i / 64].add(i % 64, words[i], false);
      const std::size_t pair = pair_at(words[i], 0);
      pairs_[pair / 64] |= std::uint64_t{1} << (pair % 64);
    }
  }

  /// Of each word whether a text holds it.
  class Found {
   public:
    bool operator[](std::size_t word) const { return (in_[word / 64] >> (word % 64) & 1) != 0; }

   private:
    friend WordScan;
    std::array<std::uint64_t, (N + 63) / 64> in_{};
  };
  /// Whether it holds any of them.
  bool any(std::string_view text) const {
    for (std::size_t at = 0; at + 3 <= text.size(); ++at) {
      if (!may_begin(text, at)) continue;
      for (std::size_t group = 0; group < starts_.size(); ++group)
        for (auto may = starts_[group](text, at); may != 0; may &= may - 1)
          if (text.substr(at).starts_with(words_[group * 64 + static_cast<std::size_t>(std::countr_zero(may))]))
            return true;
    }
    return false;
  }
  Found in(std::string_view text) const {
    Found found;
    for (std::size_t at = 0; at + 3 <= text.size(); ++at) {
      if (!may_begin(text, at)) continue;
      for (std::size_t group = 0; group < starts_.size(); ++group)
        for (auto may = starts_[group](text, at) & ~found.in_[group]; may != 0; may &= may - 1)
          if (const auto i = static_cast<std::size_t>(std::countr_zero(may));
              text.substr(at).starts_with(words_[group * 64 + i]))
            found.in_[group] |= std::uint64_t{1} << i;
    }
    return found;
  }

  /// Calls `found(word, at)` for each place of each word, in the order of the places; those of one word do not overlap.
  template <class Found>
  void each(std::string_view text, Found found) const {
    std::array<std::size_t, N> behind{};
    for (std::size_t at = 0; at + 3 <= text.size(); ++at) {
      if (!may_begin(text, at)) continue;
      for (std::size_t group = 0; group < starts_.size(); ++group)
        for (auto may = starts_[group](text, at); may != 0; may &= may - 1) {
          const auto i = group * 64 + static_cast<std::size_t>(std::countr_zero(may));
          if (at < behind[i] || !text.substr(at).starts_with(words_[i])) continue;
          behind[i] = at + words_[i].size();
          found(i, at);
        }
    }
  }

 private:
  static constexpr std::size_t pair_at(std::string_view text, std::size_t at) {
    return std::size_t{static_cast<unsigned char>(text[at])} << 8 | static_cast<unsigned char>(text[at + 1]);
  }
  /// Whether any word has these first two characters: most places of a text are none by one look.
  bool may_begin(std::string_view text, std::size_t at) const {
    const std::size_t pair = pair_at(text, at);
    return (pairs_[pair / 64] >> (pair % 64) & 1) != 0;
  }

  std::array<std::string_view, N> words_;
  std::array<std::uint64_t, 1024> pairs_{};
  std::array<WordStarts, (N + 63) / 64> starts_{};
};

/// A scan for the words of a table's rows.
template <std::size_t N, class Row>
consteval WordScan<N> scan_for(const std::array<Row, N>& rows) {
  std::array<std::string_view, N> words;
  for (std::size_t i = 0; i < N; ++i) words[i] = rows[i].words;
  return WordScan<N>(words);
}

}  // namespace vlmest::diagnose
