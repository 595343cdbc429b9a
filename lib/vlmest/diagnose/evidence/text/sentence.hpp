// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// Lines that somebody wrote, and what stands in them.
namespace vlmest::diagnose::story {

/// The first byte of a character of Chinese in UTF-8: U+4E00 to U+9FFF.
constexpr bool begins_chinese(char c) {
  const auto b = static_cast<unsigned char>(c);
  return b >= 0xe4 && b <= 0xe9;
}

/// Whether somebody wrote the line: no flag, frame, mark of an error or torch's own message.
inline bool is_sentence(std::string_view line) {
  const auto first = line.find_first_not_of(" \t>#*-`");
  if (first == std::string_view::npos) return false;
  const auto begin = line.substr(line.find_first_not_of(" \t"));
  if (begin.starts_with("--") || begin.starts_with("File \"") || begin.ends_with("\\")) return false;
  if (line.find("Tried to allocate") != std::string_view::npos) return false;
  std::size_t words = 0, chinese = 0, at = first;
  while (at < line.size()) {
    std::size_t end = at;
    bool letters = true;
    for (; end < line.size() && !is_blank(line[end]); ++end) {
      chinese += begins_chinese(line[end]);
      const bool mark = line[end] == '.' || line[end] == ',' || line[end] == '?' || line[end] == '!' ||
                        line[end] == '\'' || line[end] == '-' || line[end] == '/';
      letters = letters && (is_letter(line[end]) || mark);
    }
    words += letters && end > at + 1;
    at = end + 1;
  }
  return words >= 3 || chinese >= 4;
}

/// Whether a line in lower case has one of these words.
inline bool has_any(std::string_view low, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto w) { return low.find(w) != std::string_view::npos; });
}

/// "8*A100", "8 x H100", "8张", "8卡", "8 A100", "8 GPUs": the first number of at most 1024 of a line that counts GPUs.
inline int gpus_in(std::string_view low) {
  for (std::size_t at = 0; at < low.size(); ++at) {
    if (!is_digit(low[at]) || (at > 0 && (is_digit(low[at - 1]) || is_letter(low[at - 1]) || low[at - 1] == '.')))
      continue;
    std::size_t end = at;
    int n = 0;
    while (end < low.size() && is_digit(low[end]) && n <= 1024) n = n * 10 + (low[end++] - '0');
    while (end < low.size() && low[end] == ' ') ++end;
    auto rest = low.substr(end);
    for (const std::string_view times : {"*", "x ", "x", "×"})
      if (rest.starts_with(times)) {
        rest.remove_prefix(times.size());
        break;
      }
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    for (const std::string_view w : {"张",   "卡",    "gpu", "card", "a100", "a800", "h100", "h800", "h200", "h20",
                                     "v100", "a6000", "a40", "l40",  "l20",  "rtx",  "4090", "3090", "5090", "nvidia"})
      if (n > 0 && n <= 1024 && rest.starts_with(w)) return n;
  }
  return 0;
}

}  // namespace vlmest::diagnose::story
