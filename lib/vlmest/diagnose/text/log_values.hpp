// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/diagnose/text/log_prefix.hpp>
#include <vlmest/diagnose/text/size_text.hpp>

/// A line of a log as labels and values: "step: 10  loss: 2.31  memory: 38.21GiB(40.20%)" is step 10, loss 2.31,
/// memory 38.21GiB. The label is what stands before a value, back to the value or the separator before it.
namespace vlmest::diagnose {

struct LogValue {
  std::string_view label;  ///< with the separators at its end: "'loss': "
  std::string_view text;   ///< "2.31", "nan", "1e-05"
  std::string_view unit;   ///< letters right behind it, or after one blank where they are a unit of size
  std::string_view after;  ///< the rest of the line
  double number = 0;
};

namespace log_values {

/// NaN and infinities as Python, torch and JSON print them.
constexpr std::optional<double> special(std::string_view s) {
  for (const std::string_view word : {"nan", "-nan"})
    if (size_text::same_letters(s, 0, word) && s.size() == word.size()) return std::numeric_limits<double>::quiet_NaN();
  const bool minus = s.starts_with('-');
  if (minus) s.remove_prefix(1);
  for (const std::string_view word : {"inf", "infinity"})
    if (s.size() == word.size() && size_text::same_letters(s, 0, word))
      return minus ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// Length of a plain number at the beginning: "12", "-1.5", "1.0E+01", "1,234" (with thousands of three digits).
inline std::size_t number_length(std::string_view s) {
  std::size_t i = s.starts_with('-') || s.starts_with('+') ? 1 : 0;
  const auto first = i;
  while (i < s.size() && (is_digit(s[i]) || (s[i] == '.' && i + 1 < s.size() && is_digit(s[i + 1])) ||
                          (s[i] == ',' && i > first && i + 3 < s.size() && is_digit(s[i + 1]) && is_digit(s[i + 2]) &&
                           is_digit(s[i + 3]) && (i + 4 == s.size() || !is_digit(s[i + 4])))))
    ++i;
  if (i == first || !is_digit(s[first])) return 0;
  if (i < s.size() && lower(s[i]) == 'e') {
    auto e = i + 1;
    if (e < s.size() && (s[e] == '+' || s[e] == '-')) ++e;
    const auto digits = e;
    while (e < s.size() && is_digit(s[e])) ++e;
    if (e > digits && (e == s.size() || !is_letter(s[e]))) return e;
  }
  return i;
}

inline double to_double(std::string_view s) {
  std::array<char, 64> clean{};  // ends with a zero
  std::size_t n = 0;
  for (const char c : s)
    if (c != ',' && n + 1 < clean.size()) clean[n++] = c;
  return std::strtod(clean.data(), nullptr);
}

constexpr bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
/// What ends a label on its left.
constexpr bool separates(char c) { return c == ',' || c == '|' || c == ';' || c == '{' || c == '}' || c == '['; }

}  // namespace log_values

/// Calls found(LogValue) for each value of a line, in its order, in one pass. Numbers within words ("layer2", "fp16")
/// are none.
template <class Found>
void each_value(std::string_view line, Found found) {
  using namespace log_values;
  std::size_t label = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (separates(c)) {
      label = ++i;
      continue;
    }
    const bool sign = (c == '-' || c == '+') && i + 1 < line.size() && (i == 0 || !in_word(line[i - 1]));
    const bool starts =
        is_digit(c) || sign || ((lower(c) == 'n' || lower(c) == 'i') && (i == 0 || !in_word(line[i - 1])));
    if (!starts) {
      ++i;
      continue;
    }
    LogValue v;
    std::size_t length = number_length(line.substr(i, 60));
    if (length != 0) {
      v.number = to_double(line.substr(i, length));
    } else {
      auto end = i + (sign ? 1 : 0);
      while (end < line.size() && is_letter(line[end]) && end - i < 10) ++end;
      const auto s = special(line.substr(i, end - i));
      if (!s || (end < line.size() && in_word(line[end]))) {
        i = std::max(end, i + 1);
        continue;
      }
      v.number = *s;
      length = end - i;
    }
    if (i > 0 && in_word(line[i - 1])) {  // within a word
      i += length;
      while (i < line.size() && in_word(line[i])) ++i;
      continue;
    }
    v.label = line.substr(label, i - label);
    v.text = line.substr(i, length);
    i += length;
    auto u = i;
    if (u < line.size() && line[u] == ' ') ++u;
    auto end = u;
    while (end < line.size() && is_letter(line[end]) && end - u < 8) ++end;
    const auto word = line.substr(u, end - u);
    bool size = false;
    for (const auto& [name, shift] : size_units)
      size =
          size || (name.size() == word.size() && (word.size() > 1 || u == i) && size_text::same_letters(word, 0, name));
    if (u == i || size) {
      v.unit = word;
      i = end;
    }
    v.after = line.substr(i);
    found(v);
    label = i;
  }
}

/// A label in lower case, its words parted by one blank: "'train/Grad_Norm': " is "train grad norm".
inline std::string plain_label(std::string_view label) {
  if (label.size() > 80) label.remove_prefix(label.size() - 80);
  std::string out;
  for (const char c : label)
    if (is_letter(c) || is_digit(c))
      out += lower(c);
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// A size under its label. Without a unit: that of the label or of the line (`unit`, a power of two), else bytes for
/// whole numbers of a million and more, MiB for numbers from 1000 on, and GiB below.
inline std::optional<Bytes> size_value(const LogValue& v, std::string_view label, int unit) {
  if (!(v.number >= 0) || v.number > 4e18) return std::nullopt;
  const auto bytes = [&](int shift) -> std::optional<Bytes> {
    double b = v.number;
    for (int i = 0; i < shift; ++i) b *= 2;
    if (b > 4e18) return std::nullopt;
    return Bytes(static_cast<std::int64_t>(b + 0.5));
  };
  for (const auto& [name, shift] : size_units)
    if (v.unit.size() == name.size() && size_text::same_letters(v.unit, 0, name)) return bytes(shift);
  const auto has = [&](std::string_view word) { return log_prefix::has(label, word); };
  if (has("gigabyte") || has(" gib") || has(" gb")) return bytes(30);
  if (has("megabyte") || has(" mib") || has(" mb")) return bytes(20);
  if (has("byte")) return bytes(0);
  if (unit > 0) return bytes(unit);
  return bytes(v.number >= 1e6 ? 0 : v.number >= 1000 ? 20 : 30);
}

}  // namespace vlmest::diagnose
