// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <vlmest/diagnose/evidence/oom/candidates.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_candidates {

/// Of each character what signs are written with: letters in lower case, digits, '_' and ':'; 0: none.
consteval std::array<char, 256> kept_characters() {
  std::array<char, 256> to{};
  for (std::size_t i = 0; i < 128; ++i)
    if (const char c = static_cast<char>(i); is_letter(c) || is_digit(c) || c == '_' || c == ':') to[i] = lower(c);
  return to;
}

VLMEST_INLINE bool has_sign(std::string_view text, std::size_t at, std::size_t stem) {
  static constexpr auto stem_of = stems_of_signs();
  std::array<char, 64> near{};
  static constexpr auto kept = kept_characters();
  std::size_t first = 24, last = 24;
  for (auto i = at; i > 0 && at - i < 60 && first > 0; --i)
    if (const char c = kept[static_cast<unsigned char>(text[i - 1])]; c != 0) near[--first] = c;
  for (auto i = at; i < text.size() && i - at < 60 && last < near.size(); ++i)
    if (const char c = kept[static_cast<unsigned char>(text[i])]; c != 0) near[last++] = c;
  const std::string_view squeezed(near.data() + first, last - first);
  for (std::size_t i = 0; i < signs.size(); ++i)
    if (stem_of[i].stem == stem && stem_of[i].at <= 24 - first &&
        squeezed.substr(24 - first - stem_of[i].at).starts_with(signs[i]))
      return true;
  return false;
}

}  // namespace oom_candidates

VLMEST_INLINE std::vector<TextRange> oom_candidates_in(std::string_view text) {
  using namespace oom_candidates;
  static constexpr auto in = places();
  constexpr std::size_t before = 1500, after = 2500, most = 256 << 10;
  std::vector<TextRange> ranges;
  std::size_t known = 0;  // nothing is asked again before this
  for (std::size_t p = 4; p < text.size(); p += 5) {
    auto bits = in[static_cast<unsigned char>(text[p])];
    if (bits == 0 || p < known) continue;
    // The character before stands where the stem has it, or is none of it.
    bits &= first_places | in[static_cast<unsigned char>(text[p - 1])] << 1;
    for (; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(bits));
      const auto stem = stems[place / 5];
      const auto at = p - place % 5;
      if (!size_text::same_letters(text, at, stem) || !has_sign(text, at, place / 5)) continue;
      TextRange r{at > before ? at - before : 0, std::min(text.size(), at + after)};
      // A line is not cut where its ends are near.
      const auto back = std::min<std::size_t>(r.begin, 4096);
      if (const auto line = text.substr(r.begin - back, back).rfind('\n'); line != std::string_view::npos)
        r.begin = r.begin - back + line + 1;
      if (const auto line = text.substr(r.end, 4096).find('\n'); line != std::string_view::npos) r.end += line;
      if (!ranges.empty() && r.begin <= ranges.back().end && r.end - ranges.back().begin <= most)
        ranges.back().end = std::max(ranges.back().end, r.end);
      else if (!ranges.empty() && r.begin < ranges.back().end)
        ranges.push_back({ranges.back().end, std::max(r.end, ranges.back().end)});
      else
        ranges.push_back(r);
      known = at + 40;
    }
  }
  return ranges;
}

}  // namespace vlmest::diagnose
