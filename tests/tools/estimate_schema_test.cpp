// SPDX-License-Identifier: Apache-2.0
// What the program prints, held against the documentation: docs/reference/estimate.schema.json and cli.md.
#include <cstdio>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace estimate_schema_test {
namespace {

using schema::Json;

std::string output(const std::string& arguments) {
  std::FILE* pipe = popen((std::string("'") + VLMEST_PROGRAM + "' " + arguments).c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << arguments;
  return text;
}
std::string file(const std::string& path) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}
Json estimate(const std::string& arguments) {
  return Json::parse(output("--config llava-next-7b --json " + arguments));
}
Json estimate_schema() { return Json::parse(file("docs/reference/estimate.schema.json")); }

TEST(EstimateSchema, HoldsForWhatTheProgramPrints) {
  const Json s = estimate_schema();
  for (const char* arguments :
       {"", "--batch 8 --seq 4096 --per-layer", "--phase inference --top 0",
        "--phase train --freeze vision --per-layer", "--lora 16 --checkpointing full --per-layer",
        "--images 0 --text 1", "--images 2 --image-size 300x500 --attention eager --logits all",
        "--device t4 --dtype fp16", "--profile fused --new-tokens 1"})
    EXPECT_EQ(schema::faults(s, estimate(arguments)), std::vector<std::string>{}) << arguments;
}

TEST(EstimateSchema, HoldsForEveryFamily) {
  const Json s = estimate_schema();
  for (const char* model :
       {"llama-3.2-11b-vision", "qwen2.5-vl-3b", "gemma-3-4b", "blip2-opt-2.7b", "qwen3-vl-30b-a3b"})
    EXPECT_EQ(schema::faults(s, Json::parse(output(std::string("--json --per-layer --config ") + model))),
              std::vector<std::string>{})
        << model;
}

TEST(EstimateSchema, RefusesWhatTheProgramMustNotPrint) {
  const Json s = estimate_schema(), good = estimate("--per-layer");
  const auto refused = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return schema::faults(s, bad).size() == 1;
  };
  EXPECT_TRUE(refused("/schema_version", 2));
  EXPECT_TRUE(refused("/host", "mine"));
  EXPECT_TRUE(refused("/inference/prefill/peak_bytes", 1.5));
  EXPECT_TRUE(refused("/inference/prefill/flops", -1));
  EXPECT_TRUE(refused("/inference/decode/bound", "luck"));
  EXPECT_TRUE(refused("/inference/fits", "yes"));
  EXPECT_TRUE(refused("/inference/peak/tensors/0/shape/0", "4"));
  EXPECT_TRUE(refused("/inputs/image_size/2", 3));
  EXPECT_TRUE(refused("/layers/0/forward_us", nullptr));
  EXPECT_TRUE(refused("/training/forward/end_bytes", 0.5));
  EXPECT_TRUE(refused("/training/peak/phase", "prefill"));
  for (const auto& [key, value] : good.items()) {
    if (key == "inference" || key == "training" || key == "layers") continue;
    Json bad = good;
    bad.erase(key);
    EXPECT_EQ(schema::faults(s, bad), std::vector<std::string>{"$: has no " + key});
  }
}

TEST(EstimateSchema, BytesOfThePeakAddUp) {
  for (const char* arguments : {"--top 0", "--top 3", "--top 100000"}) {
    const Json e = estimate(arguments);
    for (const char* phases : {"inference", "training"}) {
      const Json& peak = e[phases]["peak"];
      std::int64_t sum = 0;
      for (const auto& t : peak["tensors"]) sum += t["bytes"].get<std::int64_t>();
      EXPECT_EQ(sum, peak["bytes"].get<std::int64_t>()) << arguments;
    }
  }
}

/// The page shows the help of every subcommand; that it is the right text is checked where pages are run.
TEST(CliPage, ShowsEverySubcommand) {
  const std::string page = file("docs/reference/cli.md"), help = output("--help");
  std::size_t at = help.find("Commands:\n");
  ASSERT_NE(at, std::string::npos);
  at = help.find('\n', at) + 1;
  int shown = 0;
  for (; help.compare(at, 2, "  ") == 0; at = help.find('\n', at) + 1, ++shown) {
    const std::string name = help.substr(at + 2, help.find(' ', at + 2) - at - 2);
    EXPECT_NE(page.find("$ vlmest " + name + " --help\n"), std::string::npos) << name;
  }
  EXPECT_GE(shown, 5);
}

}  // namespace
}  // namespace estimate_schema_test
#endif
