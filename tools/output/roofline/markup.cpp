// SPDX-License-Identifier: Apache-2.0
#include "markup.hpp"

#include <cstddef>

namespace vlmest::tool {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

constexpr unsigned byte(char c) { return static_cast<unsigned char>(c); }

/// Bytes of the UTF-8 sequence that `s` begins with; 0 where it is none, or stands for a character that XML 1.0 does
/// not allow (section 2.2: surrogates, U+FFFE, U+FFFF).
std::size_t sequence(std::string_view s) {
  const unsigned lead = byte(s[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || s.size() < length) return 0;
  unsigned point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(s[i]) & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte(s[i]) & 0x3F);
  }
  const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool barred = (point >= 0xD800 && point < 0xE000) || point == 0xFFFE || point == 0xFFFF || point > 0x10FFFF;
  return too_long || barred ? 0 : length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string r;
  r.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = sequence(text.substr(i));
    if (c == '&')
      r += "&amp;";
    else if (c == '<')
      r += "&lt;";
    else if (c == '>')
      r += "&gt;";
    else if (c == '"')
      r += "&quot;";
    else if (c == '\'')
      r += "&#39;";
    else if (length == 0 || (byte(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      r += replacement;
    else
      r += text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return r;
}

}  // namespace vlmest::tool
