// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Encodings of logs. The readers take UTF-8 and pass over what is none; the `>` of Windows PowerShell 5 writes UTF-16
/// with a mark at its beginning.
namespace vlmest::diagnose {

enum class TextEncoding : std::uint8_t { utf8, utf8_mark, utf16_little, utf16_big };

/// By the mark at the beginning (Unicode standard, section 23.8).
constexpr TextEncoding encoding_of(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) return TextEncoding::utf8_mark;
  if (head.starts_with("\xff\xfe")) return TextEncoding::utf16_little;
  if (head.starts_with("\xfe\xff")) return TextEncoding::utf16_big;
  return TextEncoding::utf8;
}

/// Adds a character to UTF-8.
void append_utf8(std::string& out, std::uint32_t c);

/// A text as UTF-8 without a mark. Half a pair of surrogates becomes U+FFFD; an odd last byte is left out.
std::string utf8_text(std::string text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/encoding.hpp>
#endif
