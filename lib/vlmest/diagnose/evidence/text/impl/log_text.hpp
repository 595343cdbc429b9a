// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

namespace log_text {

/// Of each character whether it stands for itself, wherever it does.
consteval std::array<bool, 256> plain_characters() {
  std::array<bool, 256> plain{};
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = static_cast<char>(i);
    plain[i] = c > '\x1f' ? c != '[' && c != '&' && c != '\\' : c != '\x1b' && c != '\0' && c != '\a' && c != '\b';
  }
  return plain;
}
inline constexpr auto plain_character = plain_characters();
constexpr bool is_plain(char c) { return plain_character[static_cast<unsigned char>(c)]; }

}  // namespace log_text

VLMEST_INLINE bool has_escapes(std::string_view line) {
  using namespace log_text;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (!is_plain(line[i]) && (line[i] != '[' || bare_colour(line.substr(i)) != 0)) return true;
  return false;
}

VLMEST_INLINE std::string plain_text(std::string_view s) {
  using namespace log_text;
  std::string out;
  out.reserve(s.size());
  for (std::size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (is_plain(c)) {
      const auto begin = i;
      while (i < s.size() && is_plain(s[i])) ++i;
      out.append(s.substr(begin, i - begin));
      continue;
    }
    const auto rest = s.substr(i);
    if (c == '\x1b') {
      i += 1 + control(rest.substr(1));
    } else if (c == '[' && bare_colour(rest) != 0) {
      i += bare_colour(rest);
    } else if (c == '&' && entity(rest).second != 0) {
      out += entity(rest).first;
      i += entity(rest).second;
    } else if (c == '\\' && i + 1 < s.size()) {
      const char next = s[i + 1];
      const auto [code, length] = escaped_code(rest);
      if (code == 0x1b || rest.starts_with("\\033")) {
        const auto n = length != 0 ? length : 4;
        i += n + control(rest.substr(n));
      } else if (length != 0) {
        out += code >= 32 && code < 127 ? static_cast<char>(code) : ' ';
        i += length;
      } else if (next == '"' || next == '\'' || next == '\\' || next == '/') {
        // "\\n" is a line break that was escaped twice, unless it is the \n... of a path.
        if (next == '\\' && i + 2 < s.size() && s[i + 2] == 'n' && !in_windows_path(s, i)) {
          out += '\n';
          i += 3;
        } else {
          out += next;
          i += 2;
        }
      } else if ((next == 'n' || next == 'r' || next == 't') && !in_windows_path(s, i)) {
        out += next == 't' ? ' ' : '\n';
        i += 2;
      } else {
        out += c;
        ++i;
      }
    } else {
      if (c != '\0' && c != '\a' && c != '\b') out += c;
      ++i;
    }
  }
  return out;
}

VLMEST_INLINE BareLine bare_line(std::string_view line) {
  BareLine b{{}, read_prefix(line)};
  line.remove_prefix(b.prefix.length);
  for (const std::string_view bar : {"\xe2\x94\x82", "\xe2\x95\x91"}) {  // the box that rich draws
    if (line.starts_with(bar)) line.remove_prefix(bar.size());
    if (line.ends_with(bar)) line.remove_suffix(bar.size());
  }
  b.text = line;
  return b;
}

VLMEST_INLINE void clean_line(std::string_view raw, std::size_t begin, std::vector<LogLine>& lines) {
  const bool escapes = has_escapes(raw);
  const std::string resolved = escapes ? plain_text(raw) : std::string();
  const std::string_view plain = escapes ? std::string_view(resolved) : raw;
  std::size_t at = 0;
  const auto first = lines.size();
  do {
    BareLine line = bare_line(next_line(plain, at));
    LogPrefix& p = line.prefix;
    if (lines.size() > first && p.writer.empty()) {
      p.writer = lines[first].writer;
      p.rank = lines[first].rank;
    }
    lines.push_back({std::string(line.text), std::move(p.writer), p.rank, begin});
  } while (at < plain.size());
}

VLMEST_INLINE std::vector<LogLine> clean_lines(std::string_view text, std::size_t offset) {
  std::vector<LogLine> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = at;
    clean_line(next_line(text, at), offset + begin, lines);
  }
  return lines;
}

}  // namespace vlmest::diagnose
