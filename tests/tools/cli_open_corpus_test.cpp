// SPDX-License-Identifier: Apache-2.0
// Failures that were reported in public, with the causes that their threads settled on: what `diagnose` says of them,
// with the text alone.
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>

#include "../sanitizer.hpp"
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_open_corpus_test {
namespace {

namespace diagnose = vlmest::diagnose;

/// Words of the threads' causes that are others of vlmest's.
const std::map<std::string, std::string> ours{{"vision_tokens", "vision_tiles"},
                                              {"optimizer_states", "optimizer_state"},
                                              {"dataloader", "host_memory"},
                                              {"rollout_engine", "engine_budget"},
                                              {"loading", "weights"},
                                              {"not_memory", "unknown"}};

struct Counts {
  int cases = 0, right = 0, refused = 0;
  int sure = 0, sure_right = 0;           ///< of a settled cause, said with a confidence of 80 % or more
  std::vector<std::string> surely_other;  ///< another cause than the settled one, with a confidence of half or more
  std::array<diagnose::Counted, diagnose::story_rules> guesses{};  ///< by what somebody tells, by rule
};

/// The rule that a verdict is a guess of, by its words; story_rules for others.
std::size_t rule_of(const std::string& why) {
  std::size_t i = 0;
  while (i < diagnose::story_rules &&
         why.find(diagnose::reason(static_cast<diagnose::StoryRule>(i))) == std::string::npos)
    ++i;
  return i;
}

/// What is said of a file's cases.
Counts counts(const char* file, bool with_flags) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/corpus/" + file);
  const auto cases = nlohmann::json::parse(in);
  Counts n;
  const Folder f;
  for (std::size_t i = 0; i < cases.size(); i += one_in(16)) {
    const auto& c = cases[i];
    ++n.cases;
    std::string text, flags;
    for (const auto& line : c["evidence"]) text += line.get<std::string>() + "\n";
    if (with_flags)
      for (const auto& flag : c["flags"]) flags += " '" + flag.get<std::string>() + "'";
    const Called r = run("diagnose '" + f.write("text", text) + "' --json" + flags);
    if (r.code != 0) {
      ++n.refused;
      EXPECT_LE(r.code, 3) << c["name"] << r.err;
      continue;
    }
    const auto v = nlohmann::json::parse(r.out)["verdict"];
    const std::string truth = c["true_cause"], cause = v["cause"];
    const auto other = ours.find(truth);
    const bool sure = cause != "unknown" && truth != "unknown" && v["confidence"].get<double>() >= 0.8;
    n.sure += sure;
    n.sure_right += sure && cause == (other == ours.end() ? truth : other->second);
    const bool right = cause == (other == ours.end() ? truth : other->second);
    if (const std::size_t rule = rule_of(v["why"]); rule < diagnose::story_rules) {
      ++n.guesses[rule].of;
      n.guesses[rule].right += right;
    }
    if (right)
      ++n.right;
    else if (cause != "unknown" && v["confidence"].get<double>() >= 0.5)
      n.surely_other.push_back(c["name"].get<std::string>() + " is " + truth + ", not " + cause);
  }
  return n;
}

/// What is reached, with the least room. A related cause (a mask, where the thread speaks of lengths) counts as
/// another.
void expect(const Counts& n, int cases, int right, std::size_t surely_other, int refused) {
  testing::Test::RecordProperty("right", n.right);
  if (n.cases < cases) return;
  EXPECT_EQ(n.cases, cases);
  EXPECT_GE(n.right, right);
  EXPECT_LE(n.surely_other.size(), surely_other) << nlohmann::json(n.surely_other);
  EXPECT_LE(n.refused, refused);
  // Nothing is said surer than 90 % by rules that were never wrong on few texts; of the halves held out 17 of 19, 16 of
  // 16 and 4 of 5 hold.
  EXPECT_GE(n.sure_right, 0.75 * n.sure) << n.sure;
}

TEST(CliOpenCorpus, TextsAlone) { expect(counts("open.json", false), 85, 67, 1, 0); }
TEST(CliOpenCorpus, WithTheFlagsOfTheThread) { expect(counts("open.json", true), 85, 68, 1, 0); }
TEST(CliOpenCorpus, SecondTextsAlone) { expect(counts("open_2.json", false), 68, 66, 0, 0); }
TEST(CliOpenCorpus, SecondWithTheFlagsOfTheThread) { expect(counts("open_2.json", true), 68, 67, 0, 0); }
TEST(CliOpenCorpus, ThirdTextsAlone) { expect(counts("open_3.json", false), 37, 32, 0, 0); }
TEST(CliOpenCorpus, ThirdWithTheFlagsOfTheThread) { expect(counts("open_3.json", true), 37, 32, 0, 0); }
// Before a rule was read off them: the fourth 30 of 53 with and without flags, the fifth 15 and 13 of 27, the sixth 15
// of 28 without and 16 with, none surely another cause.
TEST(CliOpenCorpus, FourthTextsAlone) { expect(counts("open_4.json", false), 53, 45, 0, 0); }
TEST(CliOpenCorpus, FourthWithTheFlagsOfTheThread) { expect(counts("open_4.json", true), 53, 48, 0, 0); }
TEST(CliOpenCorpus, FifthTextsAlone) { expect(counts("open_5.json", false), 27, 23, 0, 0); }
TEST(CliOpenCorpus, FifthWithTheFlagsOfTheThread) { expect(counts("open_5.json", true), 27, 25, 0, 0); }
TEST(CliOpenCorpus, SixthTextsAlone) { expect(counts("open_6.json", false), 28, 25, 0, 0); }
TEST(CliOpenCorpus, SixthWithTheFlagsOfTheThread) { expect(counts("open_6.json", true), 28, 26, 0, 0); }
// Before a rule was read off it: 23 of 41 without flags and 24 with, four surely another cause.
TEST(CliOpenCorpus, SeventhTextsAlone) { expect(counts("open_7.json", false), 41, 37, 1, 0); }
TEST(CliOpenCorpus, SeventhWithTheFlagsOfTheThread) { expect(counts("open_7.json", true), 41, 37, 1, 0); }
// Before a rule was read off it: 49 of 94 without flags and 53 with, four surely another cause.
TEST(CliOpenCorpus, EighthTextsAlone) { expect(counts("open_8.json", false), 94, 55, 1, 2); }
TEST(CliOpenCorpus, EighthWithTheFlagsOfTheThread) { expect(counts("open_8.json", true), 94, 59, 1, 2); }
TEST(CliHeldOutCorpus, SecondTextsAlone) { expect(counts("held_out_2.json", false), 52, 42, 1, 2); }
TEST(CliHeldOutCorpus, SecondWithTheFlagsOfTheThread) { expect(counts("held_out_2.json", true), 52, 42, 1, 2); }
TEST(CliHeldOutCorpus, ThirdTextsAlone) { expect(counts("held_out_3.json", false), 36, 20, 2, 2); }
TEST(CliHeldOutCorpus, ThirdWithTheFlagsOfTheThread) { expect(counts("held_out_3.json", true), 36, 20, 2, 2); }
TEST(CliHeldOutCorpus, TextsAlone) { expect(counts("held_out.json", false), 84, 37, 2, 5); }
TEST(CliHeldOutCorpus, WithTheFlagsOfTheThread) { expect(counts("held_out.json", true), 84, 38, 2, 6); }

/// A thread that is in two collections would count twice, and one that is open as well would be held out from nothing.
TEST(CliOpenCorpus, NoThreadIsInTwoCollections) {
  std::map<std::string, std::string> known;
  std::set<std::string> open_twice;
  int held_out_twice = 0;
  for (const char* file : {"open.json", "open_2.json", "open_3.json", "open_4.json", "open_5.json", "open_6.json",
                           "held_out.json", "held_out_2.json", "held_out_3.json", "open_7.json", "open_8.json"}) {
    std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/corpus/" + file);
    for (const auto& c : nlohmann::json::parse(in)) {
      const auto [first, fresh] = known.emplace(c["url"].get<std::string>(), file);
      if (fresh || first->second == file) continue;
      if (std::string(file).starts_with("open"))
        open_twice.insert(c["name"].get<std::string>());
      else
        ++held_out_twice;
    }
  }
  EXPECT_TRUE(open_twice.empty()) << nlohmann::json(open_twice);
  // One of the fourth and one of the fifth, which had been found a second time.
  EXPECT_LE(held_out_twice, 2);
}

/// The counts that the confidence of guesses is taken from.
TEST(CliOpenCorpus, GuessesAreCounted) {
  if (under_address_sanitizer) return;
  std::array<diagnose::Counted, diagnose::story_rules> all{};
  for (const char* file :
       {"open.json", "open_2.json", "open_3.json", "open_4.json", "open_5.json", "open_6.json", "open_7.json"}) {
    const Counts n = counts(file, true);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].right += n.guesses[i].right;
      all[i].of += n.guesses[i].of;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(diagnose::oom_confidence::stories[i].right, all[i].right) << i;
    EXPECT_EQ(diagnose::oom_confidence::stories[i].of, all[i].of) << i;
  }
}

/// What a text says of its run is taken, shown, and given way to a flag.
TEST(CliOpenCorpus, SettingsAreReadShownAndOverridden) {
  const std::string path = testing::TempDir() + "/settings.txt";
  std::ofstream(path) << "--model_name_or_path Qwen/Qwen2.5-VL-3B-Instruct --per_device_train_batch_size 2\n"
                         "GPU type: NVIDIA A100-SXM4-80GB\nit is out of memory\n";
  const auto flags_of = [](const nlohmann::json& j) {
    std::set<std::string> r;
    for (const auto& x : j["read"]) r.insert(x["flag"].get<std::string>());
    return r;
  };
  const auto read = flags_of(nlohmann::json::parse(run("diagnose " + path + " --json").out));
  EXPECT_TRUE(read.contains("--config qwen2.5-vl-3b"));
  EXPECT_TRUE(read.contains("--device a100-80"));
  EXPECT_TRUE(read.contains("--batch 2"));
  const auto given = flags_of(nlohmann::json::parse(run("diagnose " + path + " --batch 4 --json").out));
  EXPECT_FALSE(given.contains("--batch 2"));
  EXPECT_NE(run("diagnose " + path).out.find("read from the text: --config qwen2.5-vl-3b"), std::string::npos);
  // Figures that are none of memory.
  std::ofstream(path) << "KeyError: 'image'\nTraceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n"
                         "    x = y\nKeyError: 'image'\n";
  const auto other = nlohmann::json::parse(run("diagnose " + path + " --json").out);
  EXPECT_EQ(other["verdict"]["cause"], "unknown");
  EXPECT_NE(other["verdict"]["why"].get<std::string>().find("not memory but"), std::string::npos);
}

}  // namespace
}  // namespace cli::cli_open_corpus_test
#endif
