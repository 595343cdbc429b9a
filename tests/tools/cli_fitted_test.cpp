// SPDX-License-Identifier: Apache-2.0
// What vlmest validate shows of what was fitted to rows, and of ranges; what vlmest calibrate --host makes of rows.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_fitted_test {
namespace {

const std::string rows = VLMEST_SOURCE_DIR "/tests/validation/rows/";
const std::string configs = " --models " VLMEST_SOURCE_DIR "/tests/data/configs ";

Json quantity(const Json& v, const std::string& name) {
  for (const auto& q : v["quantities"])
    if (q["quantity"] == name) return q;
  return {};
}

TEST(FittedRows, AreShownAsSuch) {
  const std::string call = "validate " + rows + "h200-traffic.json --quantity sdpa_time,linear_time";
  const std::string text = good(call);
  EXPECT_NE(text.find("fitted\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h200-traffic.json: linear_time fitted in part: four of these"), std::string::npos) << text;
  EXPECT_EQ(text.find("none is a point"), std::string::npos) << "what was not fitted needs no reason";
  const Json v = Json::parse(good(call + " --json"));
  EXPECT_EQ(quantity(v, "linear_time")["fitted"], "partly");
  EXPECT_EQ(quantity(v, "sdpa_time")["fitted"], false);
  EXPECT_EQ(v["files"][0]["fitted"][0]["fitted"], "partly");
  EXPECT_EQ(v["rows"][0]["fitted"], "partly");
}

TEST(FittedRows, FilesThatSayNothingShowNothing) {
  const std::string one =
      R"({"benchmarks":[{"name":"copy/x","label":"{\"op\":\"copy\",\"elements\":100000000,\"dtype\":\"bf16\"}","real_time":1e5}]})";
  EXPECT_EQ(good("validate -", one).find("fitted"), std::string::npos);
  EXPECT_FALSE(quantity(Json::parse(good("validate - --json", one)), "memory_time").contains("fitted"));
}

TEST(FittedRows, MarksMustMakeSense) {
  const auto marked = [](const std::string& fitted) { return R"({"rows":[],"fitted":)" + fitted + "}"; };
  const std::string shape = "a list of {\"quantities\": […], \"fitted\": true|false|\"partly\", \"reason\": \"…\"}";
  refused("validate -", 3, "standard input.fitted: is no list", shape, marked("true"));
  refused("validate -", 3, "standard input.fitted[0]: has no reason", "say what was fitted, and when",
          marked(R"([{"quantities":["*"],"fitted":true}])"));
  refused("validate -", 3, "standard input.fitted[0].fitted: is neither true nor false nor \"partly\"",
          "whether anything was fitted to these rows", marked(R"([{"quantities":["*"],"fitted":"no"}])"));
}

TEST(FittedRows, WallTimesHaveARange) {
  const Json v = Json::parse(good("validate " + rows + "h200-training.json" + configs + "--json --quantity step_ms"));
  EXPECT_GT(quantity(v, "step_ms")["in_range_pct"], 50);
  for (const auto& r : v["rows"]) {
    EXPECT_LE(r["predicted_range"][0], r["predicted"]);
    EXPECT_GE(r["predicted_range"][1], r["predicted"]);
  }
  const Json e = Json::parse(good("--config smolvlm-256m --phase all --json"));
  for (const Json& part : {e["inference"]["prefill"], e["inference"]["decode"], e["training"]}) {
    ASSERT_EQ(part["wall_ms_range"].size(), 2u);
    EXPECT_LT(part["wall_ms_range"][0], part["wall_ms"]);
    EXPECT_GT(part["wall_ms_range"][1], part["wall_ms"]);
  }
}

TEST(HostTimes, ComeFromRecordedRows) {
  const Json v = Json::parse(good("calibrate --host " + rows + "h200-times.json --json"));
  ASSERT_EQ(v["host"].size(), 4u);
  EXPECT_EQ(v["host"][0]["key"], "launch_us");
  EXPECT_NEAR(v["host"][0]["us"].get<double>(), 14.2, 1.5);
  const std::string saved = testing::TempDir() + "my-host.json";
  good("calibrate --host " + rows + "h200-times.json --device l40s --name mine --save " + saved);
  const std::string with_mine = good("--config smolvlm-256m --phase train --json --device " + saved);
  EXPECT_NE(Json::parse(with_mine)["training"]["wall_ms"],
            Json::parse(good("--config smolvlm-256m --phase train --json --device l40s"))["training"]["wall_ms"]);
}

TEST(HostTimes, NeedRunsThatWaitForTheHost) {
  refused("calibrate --host " + rows + "h200-training.json", 2, "--host: none of the 27 runs tells what a launch costs",
          "record a small model with few tokens, so that the GPU waits for the host: decode steps with attn eager, "
          "training steps without checkpointing");
  EXPECT_EQ(run("calibrate").code, 2);
  EXPECT_EQ(run("calibrate --host a.json b.json").code, 2);
}

}  // namespace
}  // namespace cli::cli_fitted_test
#endif
