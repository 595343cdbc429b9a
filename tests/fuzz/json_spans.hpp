// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace vlmest::fuzz {

/// A value in the text of a JSON document.
struct Span {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t begin = 0, end = 0;
  std::size_t key = none;  ///< where its key begins, in an object
  char kind = 'w';         ///< '{' '[' '"', '0' for a number, 'w' for a word: true, false, null
  /// Where the member of the object begins, or the element of the list.
  std::size_t member() const { return key == none ? begin : key; }
};

/// The values of a document in the order of their beginnings, whatever the text is: what does not close ends with it.
inline void find_spans(std::string_view text, std::vector<Span>& spans) {
  spans.clear();
  std::vector<std::size_t> open;
  std::size_t key = Span::none;
  const auto is = [&](std::size_t i, std::string_view set) { return set.find(text[i]) != std::string_view::npos; };
  const auto add = [&](std::size_t begin, std::size_t end, char kind) {
    spans.push_back({begin, end, key, kind});
    key = Span::none;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const char c = text[i++];
    if (c == '"') {
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      i = i < text.size() ? i + 1 : text.size();
      std::size_t next = i;
      while (next < text.size() && is(next, " \t\r\n")) ++next;
      if (next < text.size() && text[next] == ':') {
        key = begin;
        i = next + 1;
      } else {
        add(begin, i, '"');
      }
    } else if (c == '{' || c == '[') {
      open.push_back(spans.size());
      add(begin, text.size(), c);
    } else if (c == '}' || c == ']') {
      key = Span::none;
      if (!open.empty()) {
        spans[open.back()].end = i;
        open.pop_back();
      }
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      while (i < text.size() && is(i, "0123456789+-.eE")) ++i;
      add(begin, i, '0');
    } else if (c >= 'a' && c <= 'z') {
      while (i < text.size() && text[i] >= 'a' && text[i] <= 'z') ++i;
      add(begin, i, 'w');
    }
  }
}

}  // namespace vlmest::fuzz
