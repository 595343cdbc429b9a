// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <vlmest/diagnose/evidence/trace/trace_plot.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<ByteSource> trace_plot_pickle(std::string_view page) {
  constexpr std::string_view key = "\"base64\":";
  const auto found = page.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  const auto quote = page.find('"', found + key.size());
  if (quote == std::string_view::npos) return std::nullopt;
  struct State {
    std::string_view rest;
    std::string decoded;
    std::uint32_t bits = 0;
    int count = 0;  ///< letters so far, modulo 4
  };
  auto state = std::make_shared<State>();
  state->rest = page.substr(quote + 1);
  return ByteSource(ByteSource::Refill([state]() -> std::string_view {
    auto& s = *state;
    s.decoded.clear();
    std::size_t i = 0;
    for (; i < s.rest.size() && s.decoded.size() < (std::size_t{1} << 16); ++i) {
      const char c = s.rest[i];
      const int six = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
      if (six < 0) break;
      s.bits = s.bits << 6 | static_cast<std::uint32_t>(six);
      s.count = (s.count + 1) % 4;
      if (s.count != 1) s.decoded += static_cast<char>(s.bits >> (s.count == 0 ? 0 : 8 - 2 * s.count) & 255);
    }
    s.rest.remove_prefix(i);
    return s.decoded;
  }));
}

}  // namespace vlmest::diagnose
