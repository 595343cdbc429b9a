// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>

/// Stacks as Python, IPython, rich, pytest and faulthandler print them.
namespace vlmest::diagnose {

namespace traceback_reader {

inline constexpr std::size_t longest_field = 400;  ///< of a path, a function, a source line; the rest is cut off
inline constexpr std::size_t most_frames = 512;

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && (is_blank(s.front()) || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (is_blank(s.back()) || s.back() == '\n')) s.remove_suffix(1);
  return s;
}
inline std::string field(std::string_view s) { return std::string(trim(s).substr(0, longest_field)); }

inline std::optional<std::int64_t> take_number(std::string_view& s) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (error != std::errc() || n < 0) return std::nullopt;
  s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  return n;
}

/// "in forward(self, x)": the name alone.
inline std::string function_name(std::string_view s) {
  s = trim(s);
  if (s.starts_with("in ")) s.remove_prefix(3);
  return field(s.substr(0, s.find_first_of("(,")));
}

/// Where a frame begins in a line: at its first letter, or at `File "` behind two blanks, whatever a logger wrote
/// before. npos where there is none.
constexpr std::size_t frame_begin(std::string_view s) {
  const auto first = s.find_first_not_of(" \t");
  if (first == std::string_view::npos) return first;
  if (s.substr(first).starts_with("File ") || s.substr(first).starts_with("Cell In")) return first;
  const auto file = s.substr(0, 300).find("  File \"");
  return file == std::string_view::npos ? file : file + 2;
}

/// A path that a notebook made a link, "[/a/b.py:12](http://host/...) in f", as "/a/b.py:12 in f"; "File " may stand
/// before it. Empty where it is none.
std::string unlinked(std::string_view s);

/// `File "x.py", line 12, in f`, with or without the quotes and the last comma (faulthandler: line 12 in f); also
/// `/a/x.py", line 12, in f`, whose beginning is cut off.
std::optional<Frame> python_frame(std::string_view s);

/// "/a/b.py:12 in f" (rich, pytest's "b.py:12: in f"), "/a/b.py in f(x)" and "<ipython-input-3-ab> in f(x)" (IPython
/// 7).
std::optional<Frame> path_frame(std::string_view s);

/// The marked line of IPython's and rich's listings: "---> 12     code", "❱ 12 │   code".
bool marked_code(std::string_view s, Frame& f);

inline bool is_marker(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c == '^' || c == '~' || is_blank(c); });
}

/// Whether a line may be the rest of the one before it: the lines of a stack are indented, and what ends one names an
/// exception.
inline bool may_continue(std::string_view s) {
  return !s.empty() && !is_blank(s[0]) && !s.starts_with("File ") && !s.starts_with("Traceback") &&
         s.find("Error: ") == std::string_view::npos && s.find("Exception: ") == std::string_view::npos;
}

/// Lines that a terminal or a pager broke, put together again: `File "...` without its line number takes the next line,
/// wherever the break is; other lines do where several are as long as the longest, which is the terminal's width.
std::vector<std::string> unwrapped(const std::vector<std::string_view>& lines);

}  // namespace traceback_reader

inline bool begins_traceback(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos;
}

/// The frames of consecutive lines. Lines that are none are passed over; a new "Traceback" begins anew.
std::vector<Frame> read_frames(const std::vector<std::string_view>& lines);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/traceback_reader.hpp>
#endif
