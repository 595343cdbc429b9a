// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/oom/facts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_facts {

VLMEST_INLINE std::optional<PrintedSize> shape_size(std::string_view s, std::size_t at) {
  if (!s.substr(at).starts_with("withshape[")) return std::nullopt;
  Wide bytes = 1;
  at += 10;
  for (;;) {
    const auto n = digits_at(s, at);
    if (!n || bytes > (Wide(1) << 62)) return std::nullopt;
    bytes *= *n;
    while (at < s.size() && is_digit(s[at])) ++at;
    if (at == s.size() || (s[at] != ',' && s[at] != ']')) return std::nullopt;
    if (s[at++] == ']') break;
  }
  if (!s.substr(at).starts_with("andtype")) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, int>, 9> types{{{"bfloat16", 2},
                                                                   {"float", 4},
                                                                   {"half", 2},
                                                                   {"double", 8},
                                                                   {"int32", 4},
                                                                   {"int64", 8},
                                                                   {"uint8", 1},
                                                                   {"int8", 1},
                                                                   {"bool", 1}}};
  for (const auto& [name, size] : types)
    if (s.substr(at + 7).starts_with(name)) {
      bytes *= size;
      return bytes < (Wide(1) << 62) ? std::optional(PrintedSize::exactly(Bytes(narrow(bytes)))) : std::nullopt;
    }
  return std::nullopt;
}

VLMEST_INLINE void find_device_share(std::string_view s, std::vector<OomFact>& facts) {
  each(s, "freememoryondevice", [&](std::size_t at) {
    const auto open = s.find('(', at), slash = s.find('/', at);
    if (open == std::string_view::npos || open - at > 28 || slash == std::string_view::npos || slash - open > 20)
      return;
    const auto number = parse_number(s.substr(open + 1, slash - open - 1));
    const auto total = size_at(s, slash + 1);
    if (!number || !total) return;
    const auto begin = size_text::number_end(s, slash + 1);
    facts.push_back({OomField::total, slash, total->at, total->size});
    for (const auto& [unit, shift] : size_units)
      if (size_text::same_letters(s, begin, unit)) {
        facts.push_back({OomField::free, open, slash, printed_size(*number, shift)});
        break;
      }
    const auto share = s.substr(total->at, 80).find("utilization(");
    const auto comma = s.find(',', total->at);
    if (share == std::string_view::npos || comma == std::string_view::npos || comma - total->at > 100) return;
    if (const auto wanted = size_at(s, comma + 1))
      facts.push_back({OomField::requested, comma, wanted->at, wanted->size});
  });
}

}  // namespace oom_facts
}  // namespace vlmest::diagnose
