// SPDX-License-Identifier: Apache-2.0
// Words of settled reports, and what is guessed of texts that share them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/report_words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_report_words.hpp>
#include <vlmest/diagnose/verdict/report_words_rows.hpp>

namespace vlmest::diagnose::report_words_test {
namespace {

using Words = std::vector<std::string>;

TEST(ReportWords, AreCountedOnceInLowerCaseWithoutEndings) {
  EXPECT_EQ(report_words("Loading loaded LOAD images; 7b max_pixels=4"), (Words{"imag", "load", "max", "pixel"}));
  EXPECT_EQ(report_words("does bytes process used"), (Words{"bytes", "does", "process", "used"}));
  EXPECT_EQ(report_words("a 1 -- \xff\xe4 . "), Words{});
  EXPECT_EQ(report_words(""), Words{});
  // What no one writes as a word: hashes, packed data.
  EXPECT_EQ(report_words(std::string(25, 'a')), Words{});
  EXPECT_EQ(report_words(std::string(24, 'a')), Words{std::string(24, 'a')});
}

TEST(ReportWords, ChineseIsReadByPairs) {
  EXPECT_EQ(report_words("显存不够 oom"), (Words{"oom", "不够", "存不", "显存"}));
  EXPECT_EQ(report_words("显 存"), Words{});
  // A text that ends within a character, and characters that are no Chinese.
  EXPECT_EQ(report_words(std::string("显存").substr(0, 5)), Words{});
  EXPECT_EQ(report_words("ありがとう㐀㐁"), Words{});
}

TEST(ReportWords, OfALongTextBeginAndEndAreRead) {
  std::string text = "first " + std::string(300 << 10, ' ') + " middle " + std::string(300 << 10, ' ') + " last";
  EXPECT_EQ(report_words(text), (Words{"first", "last"}));
}

TEST(ReportWords, TheTableIsWhole) {
  const auto rows = report_words_table::rows();
  EXPECT_GT(rows.size(), 300u);
  for (const auto& [word, row] : rows) {
    EXPECT_EQ(row.letters.size(), report_words_table::kinds) << word;
    EXPECT_GE(row.in, 3) << word;
    EXPECT_LT(2 * row.in, report_words_table::reports) << word;
  }
  EXPECT_TRUE(std::all_of(report_words_table::learnt.begin(), report_words_table::learnt.end(),
                          [](const auto& c) { return c.cause != Cause::unknown; }));
}

/// Words of the table that speak for a cause, as many as asked.
Words words_for(Cause cause, std::size_t n) {
  const auto& learnt = report_words_table::learnt;
  const auto k = static_cast<std::size_t>(
      std::find_if(learnt.begin(), learnt.end(), [&](const auto& c) { return c.cause == cause; }) - learnt.begin());
  std::vector<std::pair<double, std::string>> all;
  for (const auto& [word, row] : report_words_table::rows()) all.emplace_back(-row.weight(k), word);
  std::sort(all.begin(), all.end());
  Words r;
  for (std::size_t i = 0; i < n; ++i) r.push_back(all[i].second);
  return r;
}

TEST(ReportWords, EachCauseIsNamedByItsWords) {
  for (const auto& c : report_words_table::learnt) {
    const Words words = words_for(c.cause, 10);
    const auto v = judge_report_words(words, {});
    ASSERT_TRUE(v) << name(c.cause);
    EXPECT_EQ(v->cause, c.cause);
    EXPECT_GT(v->confidence, 0);
    EXPECT_LE(v->confidence, oom_confidence::story_at_most);
    EXPECT_NE(v->why.find("settled on " + std::string(name(c.cause))), std::string::npos) << v->why;
    EXPECT_TRUE(v->why.ends_with("That is a guess from words.")) << v->why;
    // Who guessed the same needs no second voice.
    EXPECT_FALSE(judge_report_words(words, Verdict{.cause = c.cause}));
    // What too few reports were of is not outvoted.
    EXPECT_FALSE(judge_report_words(words, Verdict{.cause = Cause::compute_bound}));
  }
}

TEST(ReportWords, TextsOfOtherWordsAreNotReadAlike) {
  EXPECT_FALSE(judge_report_words({}, {}));
  EXPECT_FALSE(judge_report_words(report_words("Lorem ipsum dolor sit amet consectetur adipiscing elit"), {}));
  EXPECT_EQ(read_alike(report_words("Lorem ipsum dolor"), Cause::unknown).cause, Cause::unknown);
  // A few words say too little, however much they speak for one cause.
  const auto few = static_cast<std::size_t>(cut_off::words_known.value) - 1;
  EXPECT_FALSE(judge_report_words(words_for(Cause::host_memory, few), {}));
  EXPECT_TRUE(judge_report_words(words_for(Cause::host_memory, few + 1), {}));
}

TEST(ReportWords, AGuessIsOneMoreVoice) {
  const Words words = words_for(Cause::leak, 10);
  const ReadAlike without = read_alike(words, Cause::unknown), with = read_alike(words, Cause::leak),
                  against = read_alike(words, Cause::weights);
  EXPECT_GT(with.probability, without.probability);
  EXPECT_LT(against.probability, without.probability);
  // A guess that is outvoted is told with its reason.
  const auto v = judge_report_words(words, Verdict{.cause = Cause::weights, .why = "By the kind of run: so it is."});
  ASSERT_TRUE(v);
  EXPECT_EQ(v->cause, Cause::leak);
  EXPECT_TRUE(v->why.ends_with("A rule's guess would be weights. By the kind of run: so it is.")) << v->why;
}

}  // namespace
}  // namespace vlmest::diagnose::report_words_test
