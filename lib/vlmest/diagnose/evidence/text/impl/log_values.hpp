// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace log_values {

VLMEST_INLINE std::size_t number_length(std::string_view s) {
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

}  // namespace log_values

VLMEST_INLINE PlainLabel::PlainLabel(std::string_view label) {
  if (label.size() > text_.size()) label.remove_prefix(label.size() - text_.size());
  for (const char c : label)
    if (is_letter(c) || is_digit(c))
      text_[size_++] = lower(c);
    else if (size_ > 0 && text_[size_ - 1] != ' ')
      text_[size_++] = ' ';
  if (size_ > 0 && text_[size_ - 1] == ' ') --size_;
}

VLMEST_INLINE std::optional<Bytes> size_value(const LogValue& v, std::string_view label, int unit) {
  if (!(v.number >= 0) || v.number > 4e18) return std::nullopt;
  const auto bytes = [&](int shift) -> std::optional<Bytes> {
    double b = v.number;
    for (int i = 0; i < shift; ++i) b *= 2;
    if (b > 4e18) return std::nullopt;
    return Bytes(static_cast<std::int64_t>(b + 0.5));
  };
  for (const auto& [name, shift] : size_units)
    if (v.unit.size() == name.size() && size_text::same_letters(v.unit, 0, name)) return bytes(shift);
  const std::string spaced = " " + std::string(label);
  const auto has = [&](std::string_view word) { return log_prefix::has(spaced, word); };
  if (has("gigabyte") || has(" gib") || has(" gb")) return bytes(30);
  if (has("megabyte") || has(" mib") || has(" mb")) return bytes(20);
  if (has("byte")) return bytes(0);
  if (unit > 0) return bytes(unit);
  return bytes(v.number >= 1e6 ? 0 : v.number >= 1000 ? 20 : 30);
}

}  // namespace vlmest::diagnose
