// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

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
std::size_t number_length(std::string_view s);

/// The number of number_length(), of at most 63 characters.
inline double to_double(std::string_view s) {
  std::array<char, 64> clean{};  // ends with a zero
  std::size_t n = 0;
  for (const char c : s)
    if (c != ',' && n + 1 < clean.size()) clean[n++] = c;
  double v = 0;
  // Beyond what a double holds strtod knows whether that is zero or infinity.
  const char* first = clean.data() + (clean[0] == '+' ? 1 : 0);
  return std::from_chars(first, clean.data() + n, v).ec == std::errc() ? v : std::strtod(clean.data(), nullptr);
}

constexpr bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
/// What ends a label on its left.
constexpr bool separates(char c) { return c == ',' || c == '|' || c == ';' || c == '{' || c == '}' || c == '['; }

/// What a separator or a value begins with; all else is passed over.
consteval std::array<bool, 256> stops() {
  std::array<bool, 256> stops{};
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const char c = static_cast<char>(i);
    stops[i] = separates(c) || is_digit(c) || c == '-' || c == '+' || lower(c) == 'n' || lower(c) == 'i';
  }
  return stops;
}
inline constexpr auto stops_at = stops();

}  // namespace log_values

/// Calls found(LogValue) for each value of a line, in its order, in one pass. Numbers within words ("layer2", "fp16")
/// are none.
template <class Found>
void each_value(std::string_view line, Found found) {
  using namespace log_values;
  std::size_t label = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (!stops_at[static_cast<unsigned char>(c)]) {
      ++i;
      continue;
    }
    if (separates(c)) {
      label = ++i;
      continue;
    }
    const bool within = i > 0 && in_word(line[i - 1]);
    const bool sign = (c == '-' || c == '+') && i + 1 < line.size() && !within;
    // "nan", "inf"
    const bool word =
        !within && i + 2 < line.size() &&
        ((lower(c) == 'n' && lower(line[i + 1]) == 'a') || (lower(c) == 'i' && lower(line[i + 1]) == 'n'));
    if (!is_digit(c) && !sign && !word) {
      ++i;
      continue;
    }
    LogValue v;
    std::size_t length = number_length(line.substr(i, 60));
    if (length != 0) {
      if (!within) v.number = to_double(line.substr(i, length));
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
    if (within) {
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
    const auto unit = line.substr(u, end - u);
    const bool size = !unit.empty() && (unit.size() > 1 || u == i) &&
                      std::any_of(size_units.begin(), size_units.end(), [&](const auto& known) {
                        return known.first.size() == unit.size() && size_text::same_letters(unit, 0, known.first);
                      });
    if (u == i || size) {
      v.unit = unit;
      i = end;
    }
    v.after = line.substr(i);
    found(v);
    label = i;
  }
}

/// A label in lower case, its words parted by one blank: "'train/Grad_Norm': " is "train grad norm". Of a longer one
/// the last 80 characters count.
class PlainLabel {
 public:
  explicit PlainLabel(std::string_view label);
  operator std::string_view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 80> text_;
  std::size_t size_ = 0;
};
inline std::string plain_label(std::string_view label) { return std::string(PlainLabel(label)); }

/// A size under its label (plain_label). Without a unit: that of the label or of the line (`unit`, a power of two),
/// else bytes for whole numbers of a million and more, MiB for numbers from 1000 on, and GiB below.
std::optional<Bytes> size_value(const LogValue& v, std::string_view label, int unit);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_values.hpp>
#endif
