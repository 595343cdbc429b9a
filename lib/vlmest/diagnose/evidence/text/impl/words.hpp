// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::string in_words(Bytes b) {
  constexpr std::array<const char*, 4> units{"bytes", "KiB", "MiB", "GiB"};
  auto v = static_cast<double>(b.value());
  std::size_t u = 0;
  for (; u + 1 < units.size() && v >= 1024; ++u) v /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : "%.2f %s", v, units[u]);
  return text;
}

VLMEST_INLINE bool is_turned_off(std::string_view behind) {
  while (!behind.empty() && std::string_view("=:\"' ").find(behind.front()) != std::string_view::npos)
    behind.remove_prefix(1);
  return behind.starts_with("false") || behind.starts_with("False");
}

}  // namespace vlmest::diagnose
