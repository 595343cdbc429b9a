// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/traceback.hpp>

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

/// `File "x.py", line 12, in f`, with or without the quotes and the last comma (faulthandler: line 12 in f).
inline std::optional<Frame> python_frame(std::string_view s) {
  s = trim(s);
  if (!s.starts_with("File ") && !s.starts_with("Cell In")) return std::nullopt;
  Frame f;
  if (s[0] == 'C') {  // Cell In[5], line 3, in f(x)
    const auto comma = s.find(", line ");
    if (comma == std::string_view::npos) return std::nullopt;
    f.file = field(s.substr(0, comma));
    s.remove_prefix(comma + 7);
  } else {
    s.remove_prefix(5);
    const char quote = !s.empty() && (s[0] == '"' || s[0] == '\'') ? s[0] : '\0';
    if (quote != '\0') {
      const auto end = s.find(quote, 1);
      if (end == std::string_view::npos) return std::nullopt;
      f.file = field(s.substr(1, end - 1));
      s.remove_prefix(end + 1);
      const auto line = s.find("line ");
      if (line == std::string_view::npos || line > 4) return std::nullopt;
      s.remove_prefix(line + 5);
    } else {
      const auto line = s.find(", line ");  // IPython 8: File ~/x.py:12, in f(x)
      const auto colon = s.find(".py:");
      if (line != std::string_view::npos && (colon == std::string_view::npos || line < colon)) {
        f.file = field(s.substr(0, line));
        s.remove_prefix(line + 7);
      } else if (colon != std::string_view::npos) {
        f.file = field(s.substr(0, colon + 3));
        s.remove_prefix(colon + 4);
      } else {
        return std::nullopt;
      }
    }
  }
  const auto n = take_number(s);
  if (!n) return std::nullopt;
  f.line = *n;
  if (!s.empty() && s[0] == ',') s.remove_prefix(1);
  s = trim(s);
  if (s.starts_with("in ")) f.function = function_name(s);
  return f;
}

/// "/a/b.py:12 in f" (rich, pytest's "b.py:12: in f"), "/a/b.py in f(x)" and "<ipython-input-3-ab> in f(x)" (IPython
/// 7).
inline std::optional<Frame> path_frame(std::string_view s) {
  s = trim(s);
  const auto in = s.find(" in ");
  if (in == std::string_view::npos || in > 300) return std::nullopt;
  auto file = trim(s.substr(0, in));
  Frame f;
  f.function = function_name(s.substr(in + 1));
  if (f.function.empty() || f.function.find(' ') != std::string::npos) return std::nullopt;
  if (const auto colon = file.find(".py:"); colon != std::string_view::npos) {
    auto rest = file.substr(colon + 4);
    const auto n = take_number(rest);
    if (!n || (!rest.empty() && rest != ":")) return std::nullopt;
    f.line = *n;
    file = file.substr(0, colon + 3);
  } else if (!file.ends_with(".py") && !file.starts_with("<ipython-input")) {
    return std::nullopt;
  }
  if (file.find(' ') != std::string_view::npos || file.find('"') != std::string_view::npos) return std::nullopt;
  f.file = field(file);
  return f;
}

/// The marked line of IPython's and rich's listings: "---> 12     code", "❱ 12 │   code".
inline bool marked_code(std::string_view s, Frame& f) {
  s = trim(s);
  const bool arrow = s.starts_with("->") || s.starts_with("--");
  if (arrow) {
    while (!s.empty() && s[0] == '-') s.remove_prefix(1);
    if (s.empty() || s[0] != '>') return false;
    s.remove_prefix(1);
  } else if (s.starts_with("\xe2\x9d\xb1")) {
    s.remove_prefix(3);
  } else {
    return false;
  }
  s = trim(s);
  const auto n = take_number(s);
  if (!n) return false;
  if (f.line == 0) f.line = *n;
  s = trim(s);
  if (s.starts_with("\xe2\x94\x82")) s.remove_prefix(3);
  f.code = field(s);
  return true;
}

inline bool is_marker(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c == '^' || c == '~' || is_blank(c); });
}

}  // namespace traceback_reader

inline bool begins_traceback(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos;
}

/// The frames of consecutive lines. Lines that are none are passed over; a new "Traceback" begins anew.
inline std::vector<Frame> read_frames(const std::vector<std::string_view>& lines) {
  using namespace traceback_reader;
  std::vector<Frame> frames;
  bool wants_code = false;
  for (const auto line : lines) {
    if (begins_traceback(line)) {
      frames.clear();
      wants_code = false;
      continue;
    }
    auto frame = python_frame(line);
    const bool python = frame.has_value();
    if (!frame) frame = path_frame(line);
    if (frame) {
      if (frames.size() == most_frames) frames.erase(frames.begin(), frames.begin() + most_frames / 2);
      frames.push_back(std::move(*frame));
      wants_code = python;
    } else if (!frames.empty()) {
      if (marked_code(line, frames.back())) {
        wants_code = false;
      } else if (wants_code && !trim(line).empty()) {
        if (!is_marker(line) && frames.back().code.empty() && line.starts_with(" ")) {
          const auto code = trim(line);
          // IPython's listing: a number before each line; its marked line comes later.
          if (!is_digit(code[0])) frames.back().code = field(code);
        }
        wants_code = is_digit(trim(line)[0]);
      }
    }
  }
  return frames;
}

}  // namespace vlmest::diagnose
