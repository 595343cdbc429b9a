// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/printed_shape.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace printed_shape {

constexpr std::size_t most = 64;

/// The numbers between brackets, which `s` begins with, and where they end; nothing where something else is in there.
inline std::optional<std::pair<Shape, std::size_t>> numbers(std::string_view s) {
  Shape shape;
  std::int64_t elements = 1;
  std::size_t at = 0;
  while (at < s.size() && (s[at] == '(' || s[at] == '[')) ++at;
  for (;;) {
    while (at < s.size() && is_blank(s[at])) ++at;
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(s.data() + at, s.data() + s.size(), n);
    if (error != std::errc() || n < 1 || shape.rank() == Shape::max_rank || n > (std::int64_t{1} << 50) / elements)
      return std::nullopt;
    elements *= n;
    shape.push_back(n);
    at = static_cast<std::size_t>(end - s.data());
    while (at < s.size() && (is_blank(s[at]) || s[at] == ',')) ++at;
    if (at == s.size()) return std::nullopt;
    if (s[at] == ')' || s[at] == ']') return std::pair(shape, at);
  }
}

/// torch's, numpy's and TensorFlow's words for a type, the longer ones first.
inline constexpr std::array<std::pair<std::string_view, DType>, 8> types{{{"bfloat16", DType::bf16},
                                                                          {"float32", DType::fp32},
                                                                          {"float16", DType::fp16},
                                                                          {"float64", DType::fp64},
                                                                          {"int64", DType::int64},
                                                                          {"type half", DType::fp16},
                                                                          {"type float", DType::fp32},
                                                                          {"type double", DType::fp64}}};

inline void read_part(std::string_view text, std::int64_t line, std::vector<PrintedShape>& found) {
  for (const std::string_view word : {"ize([", "hape"})
    for (auto at = text.find(word); at != std::string_view::npos && found.size() < most; at = text.find(word, at + 1)) {
      auto open = at + (word == "hape" ? word.size() : word.size() - 2);
      // "shape of `x` is torch.Size([..." has its own word behind it.
      for (int n = 0; n < 12 && open < text.size() && std::string_view(" :=is'\"").find(text[open]) < 8; ++n) ++open;
      if (open >= text.size() || (text[open] != '(' && text[open] != '[')) continue;
      const auto shape = numbers(text.substr(open, 160));
      if (!shape || shape->first.rank() < 2) continue;
      PrintedShape p{.shape = shape->first, .dtype = {}, .line = line};
      const auto behind = text.substr(open + shape->second, 48);
      const auto here = behind.substr(0, behind.find('\n'));
      for (const auto& [name, type] : types)
        if (!p.dtype && here.find(name) != std::string_view::npos) p.dtype = type;
      p.line += line_ends(text, at);
      found.push_back(p);
    }
}

}  // namespace printed_shape

VLMEST_INLINE std::vector<PrintedShape> find_printed_shapes(std::string_view text) {
  constexpr std::size_t part = 256 << 10;
  std::vector<PrintedShape> found;
  printed_shape::read_part(text.substr(0, part), 1, found);
  if (text.size() > part) {
    const std::size_t from = std::max(part, text.size() - std::min(text.size(), part));
    printed_shape::read_part(text.substr(from), 1 + line_ends(text, from), found);
  }
  return found;
}

}  // namespace vlmest::diagnose
