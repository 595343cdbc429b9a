// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>

namespace vlmest::diagnose {

/// A line as the program wrote it, without what terminals, loggers and web pages put around it.
struct LogLine {
  std::string text;
  std::string writer;                ///< LogPrefix::writer
  std::optional<std::int64_t> rank;  ///< LogPrefix::rank
  std::size_t begin = 0;             ///< of the raw line, in the text that it was cut from
};

namespace log_text {

inline constexpr std::array<std::pair<std::string_view, char>, 7> entities{
    {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", ' '}, {"num", '#'}}};

/// The character of an entity that begins at s[0] == '&', and its length; 0 where it is none.
constexpr std::pair<char, std::size_t> entity(std::string_view s) {
  const auto semicolon = s.substr(0, 12).find(';');
  if (semicolon == std::string_view::npos || semicolon < 3) return {0, 0};
  auto name = s.substr(1, semicolon - 1);
  if (name[0] != '#') {
    for (const auto& [word, c] : entities)
      if (name == word) return {c, semicolon + 1};
    return {0, 0};
  }
  const bool hex = name.size() > 1 && lower(name[1]) == 'x';
  name.remove_prefix(hex ? 2 : 1);
  int n = 0;
  for (const char c : name) {
    const int digit = is_digit(c) ? c - '0' : hex && lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : 99;
    if (digit == 99 || n > 0x10ffff) return {0, 0};
    n = n * (hex ? 16 : 10) + digit;
  }
  return {n >= 32 && n < 127 ? static_cast<char>(n) : ' ', semicolon + 1};
}

/// Length of what a terminal takes for colour or movement from s[0] on, after its ESC: "[31m", "]0;title BEL", "(B".
constexpr std::size_t control(std::string_view s) {
  if (s.empty()) return 0;
  if (s[0] == '[') {
    std::size_t i = 1;
    while (i < s.size() && i < 40 && s[i] >= 0x20 && s[i] <= 0x3f) ++i;
    return i < s.size() && s[i] >= 0x40 && s[i] <= 0x7e ? i + 1 : 0;
  }
  if (s[0] == ']') {
    const auto bell = s.substr(0, 400).find('\a');
    return bell == std::string_view::npos ? 1 : bell + 1;
  }
  return s[0] == '(' || s[0] == ')' ? std::min<std::size_t>(2, s.size()) : 1;
}
/// "[31m", "[1;36m", "[0m" that lost their ESC on the way through a web page.
constexpr std::size_t bare_colour(std::string_view s) {
  std::size_t i = 1;
  while (i < s.size() && i < 12 && (is_digit(s[i]) || s[i] == ';')) ++i;
  return i > 1 && i < s.size() && s[i] == 'm' ? i + 1 : 0;
}

/// The character of "\u001b" or "\x1b" at s[0] == '\\' and its length.
constexpr std::pair<int, std::size_t> escaped_code(std::string_view s) {
  const std::size_t digits = s.size() > 1 && s[1] == 'u' ? 4 : s.size() > 1 && s[1] == 'x' ? 2 : 0;
  if (digits == 0 || s.size() < 2 + digits) return {0, 0};
  int n = 0;
  for (const char c : s.substr(2, digits)) {
    const char l = lower(c);
    if (!is_digit(l) && !(l >= 'a' && l <= 'f')) return {0, 0};
    n = n * 16 + (is_digit(l) ? l - '0' : l - 'a' + 10);
  }
  return {n, 2 + digits};
}

/// Whether the backslash at `at` belongs to a Windows path: the word around it has a drive.
constexpr bool in_windows_path(std::string_view s, std::size_t at) {
  for (std::size_t i = at; i > 0 && at - i < 260; --i) {
    const char c = s[i - 1];
    if (c == '"' || c == '\'' || is_blank(c) || c == '\n') return false;
    if (c == ':' && i > 1 && is_letter(s[i - 2])) return i < s.size() && (s[i] == '\\' || s[i] == '/');
  }
  return false;
}

}  // namespace log_text

/// Resolves, in one pass: terminal sequences (real, written as \x1b or \033, or without ESC), HTML entities, and the
/// escapes of JSON strings and Python's repr (\n becomes a line break, \" a quote). Bytes that are no UTF-8 stay.
std::string plain_text(std::string_view s);

/// Where the next "\n" or "\r" stands, text.size() where none does. In parts, each searched for one and then the other:
/// a search for both looks at every character twice, one for each as far as it goes reads a long text again and again.
constexpr std::size_t line_end(std::string_view text, std::size_t at) {
  constexpr std::size_t part = 512;
  for (; at < text.size(); at += part) {
    auto here = text.substr(at, part);
    const auto line = here.find('\n');
    here = here.substr(0, line);
    if (const auto bar = here.find('\r'); bar != std::string_view::npos) return at + bar;
    if (line != std::string_view::npos) return at + line;
  }
  return text.size();
}

/// Takes the next line off a text; "\n", "\r\n" and the "\r" of progress bars end one. `at` moves on.
constexpr std::string_view next_line(std::string_view text, std::size_t& at) {
  const auto begin = at;
  const auto end = line_end(text, at);
  at = end < text.size() ? end + 1 : end;
  if (at < text.size() && text[end] == '\r' && text[at] == '\n') ++at;
  return text.substr(begin, end - begin);
}

/// The same up to the next "\n" alone, as editors count lines: a progress bar with its "\r" is one.
constexpr std::string_view next_counted_line(std::string_view text, std::size_t& at) {
  const auto begin = at;
  const auto end = std::min(text.find('\n', at), text.size());
  at = std::min(end + 1, text.size());
  return text.substr(begin, end - begin);
}

/// How many lines end before `at`. Eight characters are looked at together: less "\n" a line end is a byte of zeros,
/// and adding 0x7f to the low bits of any other byte sets its highest one (Warren, "Hacker's Delight", 6-1).
inline std::int64_t line_ends(std::string_view text, std::size_t at) {
  constexpr std::uint64_t ones = 0x0101010101010101, low = 0x7f * ones, lines = '\n' * ones;
  std::int64_t n = 0;
  std::size_t i = 0;
  for (; i + 8 <= at; i += 8) {
    std::uint64_t v = 0;
    std::memcpy(&v, text.data() + i, 8);
    v ^= lines;
    n += static_cast<std::int64_t>(((~(((v & low) + low) | v | low) >> 7) * ones) >> 56);
  }
  for (; i < at; ++i) n += text[i] == '\n' ? 1 : 0;
  return n;
}

/// A line without what is put around it, and what its prefix tells.
struct BareLine {
  std::string_view text;
  LogPrefix prefix;
};

/// Takes prefix and box off a line without escapes.
BareLine bare_line(std::string_view line);

/// Whether a line holds what plain_text() resolves or leaves out.
bool has_escapes(std::string_view line);

/// The lines of a raw line: one, or several where it holds escaped line breaks. The first gives writer and rank to the
/// others. Adds to `lines`.
void clean_line(std::string_view raw, std::size_t begin, std::vector<LogLine>& lines);

/// All lines of a text, cleaned. Memory and time are those of the text: cut large logs to the part that matters first.
std::vector<LogLine> clean_lines(std::string_view text, std::size_t offset = 0);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_text.hpp>
#endif
