// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <vlmest/diagnose/evidence/text/report_words.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace report_words_of {

/// "loading" and "loaded" are counted as "load", "process" as itself.
inline std::string_view without_ending(std::string_view word) {
  if (word.ends_with("ss")) return word;
  for (const std::string_view ending : {"ing", "ed", "es", "s"})
    if (word.size() > 5 && word.ends_with(ending)) return word.substr(0, word.size() - ending.size());
  return word;
}

/// Whether a Chinese character (U+4E00 to U+9FFF: three bytes in UTF-8) stands there.
inline bool chinese_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (at + 3 > text.size() || (byte(at + 1) & 0xc0) != 0x80 || (byte(at + 2) & 0xc0) != 0x80) return false;
  return byte(at) == 0xe4 ? byte(at + 1) >= 0xb8 : byte(at) > 0xe4 && byte(at) <= 0xe9;
}

inline void take(std::string_view text, std::unordered_set<std::string>& words) {
  constexpr std::size_t longest = 24;
  std::string word;
  for (std::size_t at = 0; at < text.size();) {
    if (is_letter(text[at])) {
      const std::size_t begin = at;
      while (at < text.size() && is_letter(text[at])) ++at;
      if (at - begin < 2 || at - begin > longest) continue;
      word.assign(text.substr(begin, at - begin));
      std::transform(word.begin(), word.end(), word.begin(), lower);
      words.emplace(without_ending(word));
    } else if (chinese_at(text, at)) {
      if (chinese_at(text, at + 3)) words.emplace(text.substr(at, 6));
      at += 3;
    } else {
      ++at;
    }
  }
}

}  // namespace report_words_of

VLMEST_INLINE std::vector<std::string> report_words(std::string_view text) {
  constexpr std::size_t part = 256 << 10;
  std::unordered_set<std::string> words;
  report_words_of::take(text.substr(0, part), words);
  if (text.size() > part) report_words_of::take(text.substr(std::max(part, text.size() - part)), words);
  std::vector<std::string> r(words.begin(), words.end());
  std::sort(r.begin(), r.end());
  return r;
}

}  // namespace vlmest::diagnose
