// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_report_words.hpp>
#include <vlmest/diagnose/verdict/report_words_rows.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE ReadAlike read_alike(const std::vector<std::string>& words, Cause guessed) {
  namespace table = report_words_table;
  const auto rows = table::rows();
  std::vector<std::pair<std::string_view, table::Row>> found;
  std::array<double, table::kinds> speaks{};
  double squares = 0;
  for (const std::string& w : words) {
    const auto row = rows.find(w);
    if (row == rows.end()) continue;
    found.emplace_back(*row);
    const double rarity = row->second.rarity();
    squares += rarity * rarity;
    for (std::size_t k = 0; k < table::kinds; ++k) speaks[k] += rarity * row->second.weight(k);
  }
  ReadAlike r{.known = static_cast<int>(found.size())};
  if (found.empty()) return r;
  for (std::size_t k = 0; k < table::kinds; ++k)
    speaks[k] = table::learnt[k].bias + table::length / std::sqrt(squares) * speaks[k];
  for (std::size_t k = 0; k < table::kinds; ++k)
    if (table::learnt[k].cause == guessed) speaks[k] += voice_of_a_guess;
  const auto beside = table::shares(speaks);
  const auto best = static_cast<std::size_t>(std::max_element(beside.begin(), beside.end()) - beside.begin());
  r.cause = table::learnt[best].cause;
  r.probability = beside[best];
  const auto part = [&](const auto& w) { return w.second.rarity() * w.second.weight(best); };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return part(a) > part(b); });
  for (std::size_t i = 0; i < found.size() && i < 4 && part(found[i]) > 0; ++i) r.words.emplace_back(found[i].first);
  return r;
}

VLMEST_INLINE std::optional<Verdict> judge_report_words(const std::vector<std::string>& words,
                                                        const std::optional<Verdict>& guess) {
  const Cause guessed = guess ? guess->cause : Cause::unknown;
  const ReadAlike a = read_alike(words, guessed);
  if (a.cause == guessed || !cut_off::alike.reached(a.probability) || !cut_off::words_known.reached(a.known))
    return std::nullopt;
  // A rule may know what too few reports were of.
  if (guess && !report_words_table::knows(guessed)) return std::nullopt;
  const Counted counted = oom_confidence::read_alike;
  Verdict v{.cause = a.cause, .confidence = std::min(counted.share(), oom_confidence::story_at_most)};
  for (const std::string& w : a.words) v.why += (v.why.empty() ? "By \"" : "\", \"") + w;
  v.why += (v.why.empty() ? "Reports" : "\": reports") + std::string(" that read like this one settled on ") +
           std::string(name(a.cause)) + ". Of " + std::to_string(counted.of) +
           " such answers for texts that were new " + std::to_string(counted.right) + " were right.";
  v.why += guess ? " A rule's guess would be " + std::string(name(guessed)) + ". " + guess->why
                 : " That is a guess from words.";
  v.alike = AlikeReports{.words = a.words, .right = counted.right, .of = counted.of, .guess = guessed};
  return v;
}

}  // namespace vlmest::diagnose
