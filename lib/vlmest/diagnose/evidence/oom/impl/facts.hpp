// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/oom/facts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_facts {

/// The bytes of "shape[500,17,17,4032]andtypefloat" (TensorFlow's ResourceExhaustedError) behind `at`.
inline std::optional<PrintedSize> shape_size(std::string_view s, std::size_t at) {
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

/// vLLM's "Free memory on device cuda:0 (59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.9,
/// 71.24 GiB)": what is free, what there is, and the share that it is to take.
inline void add_device_share(std::string_view s, std::size_t at, std::vector<OomFact>& facts) {
  const auto open = s.find('(', at), slash = s.find('/', at);
  if (open == std::string_view::npos || open - at > 28 || slash == std::string_view::npos || slash - open > 20) return;
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
}

/// "allocating 9000.00 MiB on device 0: cudaMalloc failed", pasted without the function's name before it.
inline std::optional<OomFact> cuda_malloc(std::string_view s, std::size_t at) {
  auto digits = at;
  while (digits > 0 && is_digit(s[digits - 1])) --digits;
  if (!ends_with(s, digits, "ondevice")) return std::nullopt;
  const auto size = size_before(s, digits - 8);
  if (!size) return std::nullopt;
  return OomFact{OomField::requested, size->at, digits, size->size};
}

/// "Process 4711 has 3.20 GiB memory in use"
inline std::optional<OomFact> process(std::string_view s, std::size_t at) {
  const auto pid = digits_at(s, at + 7);
  if (!pid) return std::nullopt;
  auto has = at + 7;
  while (has < s.size() && is_digit(s[has])) ++has;
  if (!s.substr(has).starts_with("has")) return std::nullopt;
  const auto size = size_at(s, has + 3);
  if (!size) return std::nullopt;
  return OomFact{OomField::process, at, size->at, size->size, *pid};
}

inline std::optional<OomFact> gpu(std::string_view s, std::string_view word, std::size_t at) {
  const auto n = digits_at(s, at + word.size());
  if (!n || *n > 4096) return std::nullopt;
  auto end = at + word.size();
  while (end < s.size() && is_digit(s[end])) ++end;
  const auto next = s.substr(end);
  for (const std::string_view follows : {";", "has", "would", ":cuda", "buffer", ".cannot"})
    if (word == "ongpu" || next.starts_with(follows)) return OomFact{OomField::gpu, at, end, std::nullopt, *n};
  return std::nullopt;
}

VLMEST_INLINE void add_other_facts(std::string_view s, OtherWords words, std::size_t at, std::vector<OomFact>& facts) {
  const std::string_view word = other_words[static_cast<std::size_t>(words)];
  std::optional<OomFact> fact;
  switch (words) {
    case OtherWords::tensor:
      if (const auto size = shape_size(s, at + word.size()))
        fact = OomFact{OomField::requested, at + word.size(), at + word.size() + 1, size};
      break;
    case OtherWords::device_share: add_device_share(s, at, facts); break;
    case OtherWords::cuda_malloc: fact = cuda_malloc(s, at); break;
    case OtherWords::process: fact = process(s, at); break;
    default: fact = gpu(s, word, at); break;
  }
  if (fact) facts.push_back(*fact);
}

}  // namespace oom_facts
}  // namespace vlmest::diagnose
