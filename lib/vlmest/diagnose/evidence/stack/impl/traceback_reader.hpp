// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace traceback_reader {

VLMEST_INLINE std::string unlinked(std::string_view s) {
  const std::string_view file = s.starts_with("File [") ? "File " : "";
  s.remove_prefix(file.size());
  if (!s.starts_with('[')) return {};
  const auto middle = s.substr(0, 300).find("](");
  if (middle == std::string_view::npos) return {};
  const auto end = s.substr(0, 900).find(')', middle);
  if (end == std::string_view::npos) return {};
  return std::string(file) + std::string(s.substr(1, middle - 1)) + std::string(s.substr(end + 1));
}

VLMEST_INLINE std::optional<Frame> python_frame(std::string_view s) {
  const auto begin = frame_begin(s);
  std::string cut;
  if (begin != std::string_view::npos) {
    s = trim(s.substr(begin));
    if (cut = unlinked(s); !cut.empty()) s = cut;
  } else if (const auto path = s.substr(0, 300).find(".py\", line "); path != std::string_view::npos) {
    const auto blank = s.substr(0, path).find_last_of(" \t\"");
    cut = "File \"" + std::string(s.substr(blank == std::string_view::npos ? 0 : blank + 1));
    s = trim(cut);
  } else {
    return std::nullopt;
  }
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

VLMEST_INLINE std::optional<Frame> path_frame(std::string_view s) {
  s = trim(s);
  const std::string plain = unlinked(s);
  if (!plain.empty()) s = plain;
  const auto in = s.find(" in ");
  if (in == std::string_view::npos || in > 300) return std::nullopt;
  auto file = trim(s.substr(0, in));
  Frame f;
  f.function = function_name(s.substr(in + 1));
  const bool cell = f.function.starts_with("<cell line");
  if (f.function.empty() || (f.function.find(' ') != std::string::npos && !cell)) return std::nullopt;
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

VLMEST_INLINE bool marked_code(std::string_view s, Frame& f) {
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

VLMEST_INLINE std::vector<std::string> unwrapped(const std::vector<std::string_view>& lines) {
  std::size_t width = 0, full = 0;
  for (const auto line : lines)
    if (line.size() >= width) {
      full = line.size() == width ? full + 1 : 1;
      width = line.size();
    }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line(lines[i]);
    const auto incomplete = [&] {
      const auto begin = frame_begin(line);
      if (begin == std::string::npos || line.compare(begin, 6, "File \"") != 0) return false;
      const auto number = line.find(", line ", begin);
      return number == std::string::npos || line.find_first_of("0123456789", number) == std::string::npos ||
             line.ends_with(',') || line.ends_with(" in");
    };
    for (int more = 0; more < 4 && i + 1 < lines.size(); ++more) {
      const bool broken = full > 1 && width >= 60 && lines[i].size() == width && may_continue(lines[i + 1]);
      if (!broken && !(incomplete() && lines[i].size() > 20)) break;
      // A break between words took the blank with it.
      if (line.ends_with(',') || line.ends_with(" line") || line.ends_with(" in")) line += ' ';
      line += trim(lines[i + 1]);
      ++i;
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace traceback_reader

VLMEST_INLINE std::vector<Frame> read_frames(const std::vector<std::string_view>& lines) {
  using namespace traceback_reader;
  std::vector<Frame> frames;
  bool wants_code = false;
  std::size_t indent = 0;  ///< of the last frame: what a logger wrote before it stands before its code too
  for (const std::string& whole : unwrapped(lines)) {
    std::string_view line = whole;
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
      const auto begin = frame_begin(line);
      indent = python && begin != std::string_view::npos && line.find_first_not_of(" \t") != begin ? begin - 2 : 0;
      frames.push_back(std::move(*frame));
      wants_code = python;
    } else if (!frames.empty()) {
      line.remove_prefix(std::min(indent, line.size()));
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
    } else if (Frame cut; marked_code(line, cut)) {  // of a listing whose heading was cut off
      frames.push_back(std::move(cut));
    }
  }
  return frames;
}

}  // namespace vlmest::diagnose
