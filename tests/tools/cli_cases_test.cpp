// SPDX-License-Identifier: Apache-2.0
// Public failures, by their text alone: tests/data/cases, with the threads that they are from. What the text does not
// tell is not said with more than half.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_cases_test {
namespace {

const std::string data = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";
bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST(PublicCases, SayTheirCauseOrNoneWithMoreThanHalf) {
  const Json index = Json::parse(slurp(data + "cases/index.json")),
             s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/diagnosis.schema.json"));
  ASSERT_EQ(index["cases"].size(), 10u);
  for (const auto& c : index["cases"]) {
    const std::string file = c["file"];
    const Json j = Json::parse(good("diagnose " + data + "cases/" + file + " --json"));
    if (c["cause"] == "unknown")
      EXPECT_LT(j["verdict"]["confidence"], 0.5) << file << j["verdict"]["why"];
    else
      EXPECT_EQ(j["verdict"]["cause"], c["cause"]) << file << j["verdict"]["why"];
    EXPECT_TRUE(has(j["verdict"]["why"], c["says"].get<std::string>())) << file << j["verdict"]["why"];
    EXPECT_EQ(schema::faults(s, j), std::vector<std::string>{}) << file;
    const std::string text = good("diagnose " + data + "cases/" + file);
    EXPECT_TRUE(has(text, "cause: " + j["verdict"]["cause"].get<std::string>())) << file;
    EXPECT_TRUE(has(text, j["verdict"]["why"].get<std::string>())) << file;
  }
}

/// A server within a trainer (ms-swift issue 5894): the flag that says training is contradicted.
TEST(PublicCases, AFlagThatContradictsTheStackIsSaidTo) {
  const std::string model = data + "cases/swift5894.txt --config " + data + "configs/qwen2-vl-2b.json";
  const Json told = Json::parse(good("diagnose " + model + " --json"));
  EXPECT_EQ(told["verdict"]["phase"]["is"], "inference");
  const Json said = Json::parse(good("diagnose " + model + " --phase train --json"));
  EXPECT_EQ(said["verdict"]["phase"]["is"], "train");
  EXPECT_TRUE(has(said["verdict"]["why"], "--phase says training, but `apply_rotary")) << said["verdict"]["why"];
}

/// Text and JSON tell one story: where no settings explain the request, no action is said to be enough.
TEST(PublicCases, NoActionIsEnoughForWhatIsNotExplained) {
  const std::string asked =
      "diagnose " + data + "cases/xinference3230.txt --config " + data + "configs/qwen2-vl-2b.json --phase inference";
  const Json j = Json::parse(good(asked + " --json"));
  EXPECT_EQ(j["verdict"]["explained"]["by_settings"], false);
  ASSERT_FALSE(j["actions"].empty());
  for (const auto& a : j["actions"]) {
    EXPECT_EQ(a["fits"], false) << a;
    EXPECT_EQ(a["fits_known"], false) << a;
  }
  const std::string text = good(asked);
  EXPECT_FALSE(has(text, "  yes  ")) << text;
  EXPECT_TRUE(has(text, "whether an action is enough is not known")) << text;
}

/// Where nothing tells whether it trained, actions of both ways are given, each with its own.
TEST(PublicCases, BothPhasesAreConsidered) {
  const Json j = Json::parse(
      good("diagnose " + data + "cases/xinference3230.txt --config " + data + "configs/qwen2-vl-2b.json --json"));
  EXPECT_FALSE(j["verdict"].contains("phase"));
  bool training = false, inference = false;
  for (const auto& a : j["actions"]) {
    training = training || a.value("phase", "") == "train";
    inference = inference || a.value("phase", "") == "inference";
  }
  EXPECT_TRUE(training && inference) << j["actions"];
}

}  // namespace
}  // namespace cli::cli_cases_test
#endif
