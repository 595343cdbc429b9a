// SPDX-License-Identifier: Apache-2.0
// Failures that were reported in public, with the causes that their threads settled on: what `diagnose` says of them,
// with the text alone.
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_open_corpus_test {
namespace {

/// Words of the threads' causes that are others of vlmest's.
const std::map<std::string, std::string> ours{{"vision_tokens", "vision_tiles"},
                                              {"optimizer_states", "optimizer_state"},
                                              {"dataloader", "host_memory"},
                                              {"rollout_engine", "engine_budget"},
                                              {"loading", "weights"},
                                              {"not_memory", "unknown"}};

TEST(CliOpenCorpus, TextsWithoutFlags) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/corpus/open/logs.json");
  ASSERT_TRUE(in.good());
  const auto cases = nlohmann::json::parse(in);
  int right = 0, refused = 0;
  std::vector<std::string> surely_other;
  for (const auto& c : cases) {
    const std::string path = testing::TempDir() + "/open_corpus.txt";
    std::ofstream out(path);
    for (const auto& line : c["evidence"]) out << line.get<std::string>() << '\n';
    out.close();
    const Called r = run("diagnose " + path + " --json");
    const std::string of = c["name"];
    if (r.code != 0) {
      ++refused;
      ADD_FAILURE() << of << ": " << r.err;
      continue;
    }
    const auto v = nlohmann::json::parse(r.out)["verdict"];
    const std::string truth = c["true_cause"], cause = v["cause"];
    const auto other = ours.find(truth);
    if (cause == (other == ours.end() ? truth : other->second))
      ++right;
    else if (cause != "unknown" && v["confidence"].get<double>() >= 0.5)
      surely_other.push_back(of + " is " + truth + ", not " + cause);
  }
  RecordProperty("right", right);
  EXPECT_EQ(cases.size(), 52u);
  EXPECT_GE(right, 37);
  // A cache, a mask and a tower's mask, whose threads speak of lengths and of pictures.
  EXPECT_LE(surely_other.size(), 3u) << nlohmann::json(surely_other);
  EXPECT_EQ(refused, 0);
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
