// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <vlmest/diagnose/evidence/text/printed_size.hpp>

/// Sizes as programs print them: "6.10 GiB", "1,024.00MiB", "23,69 GB", "512 bytes". Every multiple is a power of 1024,
/// GB as well as GiB: torch's format_size of every version, XLA, ggml, the kernel's kB and DeepSpeed's "GB" all are.
namespace vlmest::diagnose {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Intervals add and subtract; no size is below zero.
inline PrintedSize operator+(const PrintedSize& a, const PrintedSize& b) {
  return {a.value + b.value, a.low + b.low, a.high + b.high};
}
inline PrintedSize operator-(const PrintedSize& a, const PrintedSize& b) {
  const auto over = [](Bytes x, Bytes y) { return x > y ? x - y : Bytes(); };
  return {over(a.value, b.value), over(a.low, b.high), over(a.high, b.low)};
}

/// Digits with their separators, as n / 10^decimals.
struct PrintedNumber {
  std::int64_t digits = 0;
  int decimals = 0;
  double value() const {
    double v = static_cast<double>(digits);
    for (int i = 0; i < decimals; ++i) v /= 10;
    return v;
  }
};

/// Reads "1,024.00", "23,69", "17179869184.00". A comma is a decimal mark where it is the only separator and not
/// followed by three digits. Nothing where it is no number or has more than 18 digits.
constexpr std::optional<PrintedNumber> parse_number(std::string_view s) {
  std::size_t point = std::string_view::npos;
  const auto dot = s.rfind('.'), comma = s.rfind(',');
  const auto npos = std::string_view::npos;
  if (dot != npos && comma != npos) {
    point = std::max(dot, comma);
  } else if (dot != npos) {
    if (s.find('.') == dot) point = dot;
  } else if (comma != npos) {
    if (s.find(',') == comma && s.size() - comma != 4) point = comma;
  }
  PrintedNumber n;
  int count = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!is_digit(s[i])) continue;
    if (++count > 18) return std::nullopt;
    n.digits = n.digits * 10 + (s[i] - '0');
    if (point != npos && i > point) ++n.decimals;
  }
  if (count == 0) return std::nullopt;
  return n;
}

/// Binary multiples by their lower-case name, the longer names first; 1 for bytes.
inline constexpr std::array<std::pair<std::string_view, int>, 18> size_units{{{"bytes", 0},
                                                                              {"byte", 0},
                                                                              {"kib", 10},
                                                                              {"mib", 20},
                                                                              {"gib", 30},
                                                                              {"tib", 40},
                                                                              {"pib", 50},
                                                                              {"eib", 60},
                                                                              {"kb", 10},
                                                                              {"mb", 20},
                                                                              {"gb", 30},
                                                                              {"tb", 40},
                                                                              {"pb", 50},
                                                                              {"b", 0},
                                                                              {"k", 10},
                                                                              {"m", 20},
                                                                              {"g", 30},
                                                                              {"t", 40}}};

/// The sizes that print as this number of 2^shift bytes; nothing from 2^62 bytes on, which no machine has.
constexpr std::optional<PrintedSize> printed_size(PrintedNumber n, int shift) {
  Wide scale = 1;
  for (int i = 0; i < n.decimals; ++i) scale *= 10;
  const Wide unit = Wide(1) << shift;
  if (Wide(n.digits) * unit / scale >= (Wide(1) << 62)) return std::nullopt;
  const auto at = [](Wide v) { return Bytes(narrow(v)); };
  const Wide v = (2 * Wide(n.digits) * unit + scale) / (2 * scale);
  if (shift == 0 && n.decimals == 0) return PrintedSize::exactly(at(v));
  // Many decimals leave no whole byte in the interval: then the nearest is taken.
  const Wide low = 2 * Wide(n.digits) * unit - unit, high = 2 * Wide(n.digits) * unit + unit;
  return PrintedSize{at(v), at(low < 0 ? Wide(0) : std::min(v, (low + 2 * scale - 1) / (2 * scale))),
                     at(std::max(v, high / (2 * scale)))};
}

/// A size and where it ends (or, read backwards, begins) in its text.
struct FoundSize {
  std::optional<PrintedSize> size;  ///< nothing where it is beyond every machine
  std::size_t at = 0;
};

namespace size_text {

constexpr bool in_number(char c) { return is_digit(c) || c == '.' || c == ','; }
constexpr bool same_letters(std::string_view text, std::size_t at, std::string_view word) {
  if (text.size() < at + word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (lower(text[at + i]) != word[i]) return false;
  return true;
}

/// Where the number that begins at `at` ends, and the blanks behind it.
constexpr std::size_t number_end(std::string_view text, std::size_t at) {
  while (at < text.size() && in_number(text[at])) ++at;
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

}  // namespace size_text

/// The size that begins at `at`, blanks before number and unit passed over. A name of one letter must not go on. With
/// `bare` a whole number without a unit is a count of bytes.
constexpr std::optional<FoundSize> size_at(std::string_view text, std::size_t at, bool bare = false) {
  using namespace size_text;
  const auto blanks = [&] {
    for (int n = 0; n < 8 && at < text.size() && is_blank(text[at]); ++n) ++at;
  };
  blanks();
  const auto begin = at;
  while (at < text.size() && in_number(text[at]) && at - begin < 40) ++at;
  while (at > begin && !is_digit(text[at - 1])) --at;
  if (at == begin || !is_digit(text[begin])) return std::nullopt;
  const auto number = parse_number(text.substr(begin, at - begin));
  const auto end = at;
  blanks();
  for (const auto& [word, shift] : size_units) {
    if (!same_letters(text, at, word)) continue;
    const auto after = at + word.size();
    if (word.size() == 1 && after < text.size() && is_letter(text[after])) continue;
    return FoundSize{number ? printed_size(*number, shift) : std::nullopt, after};
  }
  if (!bare || !number || number->decimals != 0) return std::nullopt;
  return FoundSize{printed_size(*number, 0), end};
}

/// The size that ends right before `end`, and where it begins.
constexpr std::optional<FoundSize> size_before(std::string_view text, std::size_t end) {
  using namespace size_text;
  for (const auto& [word, shift] : size_units) {
    if (end < word.size() || !same_letters(text, end - word.size(), word)) continue;
    auto stop = end - word.size();
    for (int n = 0; n < 8 && stop > 0 && is_blank(text[stop - 1]); ++n) --stop;
    auto begin = stop;
    while (begin > 0 && in_number(text[begin - 1]) && stop - begin < 40) --begin;
    if (begin == 0 && begin < stop && !is_digit(text[0])) return std::nullopt;  // the number is cut off
    while (begin < stop && !is_digit(text[begin])) ++begin;
    if (begin == stop || !is_digit(text[stop - 1])) continue;
    const auto number = parse_number(text.substr(begin, stop - begin));
    return FoundSize{number ? printed_size(*number, shift) : std::nullopt, begin};
  }
  return std::nullopt;
}

}  // namespace vlmest::diagnose
