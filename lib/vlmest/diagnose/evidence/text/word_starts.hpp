// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t k = 0; k < 3; ++k) {
        const char c = words[i].at(k);
        w.of[k][static_cast<unsigned char>(c)] |= std::uint64_t{1} << i;
        if (any_case && c >= 'a' && c <= 'z')
          w.of[k][static_cast<unsigned char>(c - 'a' + 'A')] |= std::uint64_t{1} << i;
      }
    return w;
  }

  /// A bit for each word; `at + 3` must not be beyond the text.
  std::uint64_t operator()(std::string_view text, std::size_t at) const {
    return of[0][static_cast<unsigned char>(text[at])] & of[1][static_cast<unsigned char>(text[at + 1])] &
           of[2][static_cast<unsigned char>(text[at + 2])];
  }
};

}  // namespace vlmest::diagnose
