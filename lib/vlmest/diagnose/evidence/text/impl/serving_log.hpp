// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <vlmest/diagnose/evidence/text/serving_log.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::uint64_t facts_in(std::string_view line) {
  static constexpr auto starts = fact_starts();
  std::uint64_t in = 0;
  for (std::size_t at = 0; at + 3 <= line.size(); ++at)
    for (auto may = starts(line, at) & ~in; may != 0; may &= may - 1)
      if (const auto i = static_cast<std::size_t>(std::countr_zero(may));
          line.substr(at).starts_with(fact_words[i].words))
        in |= std::uint64_t{1} << i;
  return in;
}

VLMEST_INLINE void add_facts(std::string_view line, std::int64_t number, std::vector<LogFact>& facts) {
  using Kind = FactWords::Kind;
  if (line.size() > 4096) line = line.substr(0, 4096);
  for (auto in = facts_in(line); in != 0 && facts.size() < 4096; in &= in - 1) {
    const auto& f = fact_words[static_cast<std::size_t>(std::countr_zero(in))];
    const auto at = line.find(f.words);
    if (!f.also.empty() && line.find(f.also) == std::string_view::npos) continue;
    LogFact fact{std::string(f.name), std::nullopt, 0, number};
    auto begin = at + f.words.size();
    if (f.words.ends_with("finished in")) {
      const auto took = line.find("took", begin);
      if (took == std::string_view::npos) continue;
      begin = took + 4;
    }
    if (f.kind == Kind::count) {
      while (begin < line.size() && is_blank(line[begin])) ++begin;
      auto end = begin;
      while (end < line.size() && size_text::in_number(line[end]) && end - begin < 24) ++end;
      while (end > begin && !is_digit(line[end - 1])) --end;
      // Only commas: thousands, however many digits follow.
      const auto n = parse_number(line.substr(begin, end - begin));
      if (!n) continue;
      fact.number = n->value();
    } else {
      auto end = at;
      while (f.kind == Kind::size_before && end > 0 && is_blank(line[end - 1])) --end;
      const auto found = f.kind == Kind::size_before ? size_before(line, end) : size_at(line, begin);
      if (!found || !found->size) continue;
      fact.size = found->size;
      fact.number = static_cast<double>(found->size->value.value());
    }
    facts.push_back(std::move(fact));
  }
}

}  // namespace vlmest::diagnose
