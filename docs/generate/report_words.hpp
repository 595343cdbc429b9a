// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/text/report_words.hpp>

#include "../../tests/corpus_causes.hpp"
#include "word_weights.hpp"

/// The table of words by cause (lib/vlmest/diagnose/verdict/report_words_table.hpp), out of the open collections.
namespace generate {

/// The first seven that are open. The eighth is not counted, so that it tells what their words are worth for texts that
/// they do not know.
inline constexpr std::array collections{"open.json",   "open_2.json", "open_3.json", "open_4.json",
                                        "open_5.json", "open_6.json", "open_7.json"};

/// A cause of fewer reports is not learnt.
inline constexpr int of_a_cause = 3;

inline std::vector<Report> settled_reports() {
  std::vector<Report> reports;
  std::map<std::string, int> of;
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const std::string path = std::string("tests/data/corpus/") + collections[i];
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path + "; run this in the root of the sources");
    for (const auto& c : nlohmann::json::parse(in)) {
      std::string text;
      for (const auto& line : c["evidence"]) text += line.get<std::string>() + "\n";
      reports.push_back(
          {corpus::cause_of(c["true_cause"].get<std::string>()), i, vlmest::diagnose::report_words(text)});
      ++of[reports.back().cause];
    }
  }
  for (Report& r : reports) {
    const auto& known = vlmest::diagnose::causes;
    const bool cause = std::find(known.begin(), known.end(), r.cause) != known.end() && r.cause != known.back();
    if (!cause || of[r.cause] < of_a_cause) r.cause.clear();
  }
  return reports;
}

inline std::string decimal(double x) {
  char s[32];
  std::snprintf(s, sizeof s, "%.4g", x);
  return s;
}

inline std::string report_words_table() {
  const std::vector<Report> reports = settled_reports();
  std::vector<const Report*> all;
  for (const Report& r : reports) all.push_back(&r);
  const WordWeights w = weigh(all);

  double most = 0;
  for (const auto& [word, of] : w.words)
    for (const double x : of.weights) most = std::max(most, std::abs(x));
  const double step = most / 25;
  const auto letter = [&](double x) {
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[static_cast<std::size_t>(26 + std::lround(x / step))];
  };

  std::string s =
      R"(// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/diagnose/evidence/cause.hpp>

/// Words of reports with the weight of each for each cause.
///
/// Written by docs/generate/report-words.cpp, by logistic regression over the )" +
      std::to_string(w.reports) + " reports of " + std::to_string(collections.size()) +
      " open collections\n/// (tests/data/corpus/open.json to " + collections.back() +
      R"() whose causes are settled: see word_weights.hpp beside it.
namespace vlmest::diagnose::report_words_table {

inline constexpr int reports = )" +
      std::to_string(w.reports) + ", without_cause = " + std::to_string(reports.size() - w.reports) +
      ";\ninline constexpr double step = " + decimal(step) + ", length = " + decimal(WordWeights::length) +
      ";\n\n/// A cause, and how likely it is before a word is read. In the order of the letters.\nstruct Learnt {\n"
      "  Cause cause;\n  double bias;\n};\ninline constexpr std::array<Learnt, " +
      std::to_string(w.causes.size()) + "> learnt{{\n";
  for (std::size_t k = 0; k < w.causes.size(); ++k)
    s += "    {Cause::" + w.causes[k] + ", " + decimal(w.bias[k]) + "},\n";
  s += R"(}};

/// A word, in how many of the reports it stands, and a letter for each cause: so many steps, from A (-26) to z (25).
inline constexpr std::string_view words =
)";
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) s += "    \"" + line + "\"\n";
    line.clear();
  };
  for (const auto& [word, of] : w.words) {
    std::string entry = word + " " + std::to_string(of.in) + " ";
    for (const double x : of.weights) entry += letter(x);
    if (line.size() + entry.size() + 1 > 112) flush();
    line += entry + " ";
  }
  flush();
  s.insert(s.size() - 1, ";");
  return s + "\n}  // namespace vlmest::diagnose::report_words_table\n";
}

}  // namespace generate
