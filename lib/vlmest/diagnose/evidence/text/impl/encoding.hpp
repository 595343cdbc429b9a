// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <vlmest/diagnose/evidence/text/encoding.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

VLMEST_INLINE std::string utf8_text(std::string text) {
  const auto encoding = encoding_of(text);
  if (encoding == TextEncoding::utf8) return text;
  if (encoding == TextEncoding::utf8_mark) {
    text.erase(0, 3);
    return text;
  }
  const bool little = encoding == TextEncoding::utf16_little;
  const auto unit = [&](std::size_t i) {
    const auto a = static_cast<unsigned char>(text[i]), b = static_cast<unsigned char>(text[i + 1]);
    return little ? std::uint32_t{a} | std::uint32_t{b} << 8 : std::uint32_t{b} | std::uint32_t{a} << 8;
  };
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
    std::uint32_t c = unit(i);
    if (c >= 0xd800 && c < 0xe000) {
      const bool pair = c < 0xdc00 && i + 3 < text.size() && unit(i + 2) >= 0xdc00 && unit(i + 2) < 0xe000;
      c = pair ? 0x10000 + ((c - 0xd800) << 10) + (unit(i + 2) - 0xdc00) : 0xfffd;
      if (pair) i += 2;
    }
    append_utf8(out, c);
  }
  return out;
}

}  // namespace vlmest::diagnose
