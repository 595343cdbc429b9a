// SPDX-License-Identifier: Apache-2.0
// Plans through the command: the schema, that estimate agrees with a plan, other formats, and what is refused.
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "../sanitizer.hpp"
#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_plan_test {
namespace {

const std::string small = "plan --config llava-onevision-0.5b ";

Json planned(const std::string& arguments) { return Json::parse(good(small + arguments + " --json")); }

TEST(Plan, HoldsItsSchema) {
  const Json s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/plan.schema.json"));
  Json bad;
  const std::array asked{"--gpu-memory 20GiB --goal max-seq --phase inference --kv fp8",
                         "--gpu-memory 24GiB --goal fastest --batch 4 --results 3",
                         "--gpu-memory 30GB --goal max-pixels --phase inference",
                         "--gpu-memory 12GiB --phase inference", "--gpu-memory 30GiB --gpus 2 --goal fastest"};
  for (std::size_t i = 0; i < asked.size(); i += one_in(3)) {
    bad = planned(asked[i]);
    EXPECT_EQ(schema::faults(s, bad), std::vector<std::string>{}) << asked[i];
  }
  bad["plans"][0]["peak_bytes"] = 0.5;
  EXPECT_EQ(schema::faults(s, bad).size(), 1u);
}

TEST(Plan, EstimateSaysTheSame) {
  const std::array asked{"--gpu-memory 24GiB --batch 2", "--gpu-memory 9GiB --phase inference --seq 4000"};
  for (std::size_t i = 0; i < asked.size(); i += one_in(2)) {
    const Json plan = planned(asked[i]);
    ASSERT_FALSE(plan["plans"].empty());
    int compared = 0;
    for (const auto& p : plan["plans"]) {
      EXPECT_TRUE(p["fits"]);
      EXPECT_LE(p["peak_bytes"], plan["device"]["limit_bytes"]);
      if (!p.contains("estimate")) continue;
      std::string command = p["estimate"];
      const Json e = Json::parse(good(command.substr(std::string("vlmest ").size()) + " --json"));
      const Json& part = e.contains("training") ? e["training"] : e["inference"]["peak"];
      EXPECT_EQ(part[e.contains("training") ? "peak_bytes" : "bytes"], p["peak_bytes"]) << command;
      ++compared;
    }
    EXPECT_GT(compared, 0);
    EXPECT_EQ(plan["asked"]["gave_up"], Json::array());
  }
}

TEST(Plan, OtherFormats) {
  const std::string arguments = small + "--gpu-memory 12GiB --phase inference ";
  const std::string text = good(arguments);
  EXPECT_NE(text.find("max-batch of inference within 12.0 GiB on h200-sxm"), std::string::npos) << text;
  EXPECT_NE(text.find("tokens that fit there"), std::string::npos);
  EXPECT_NE(good(arguments + "--format markdown").find("| changes "), std::string::npos);
  EXPECT_EQ(good(arguments + "--format csv").rfind("rank,batch,gradient_accumulation,seq,", 0), 0u);
  EXPECT_EQ(good(arguments + "--json --threads 1"), good(arguments + "--json --threads 3"));
}

TEST(Plan, TextSaysWhatIsBestAndKeepsToItsWidth) {
  const std::array<std::string, 4> asked{"--gpu-memory 12GiB --phase inference",
                                         "--gpu-memory 24GiB --batch 2 --goal fastest", "--gpu-memory 3GiB",
                                         "--gpu-memory 30GiB --gpus 2 --goal fastest"};
  for (std::size_t i = 0; i < asked.size(); i += one_in(3)) {
    const std::string text = good(small + asked[i]);
    EXPECT_NE(text.find("\nbest first: same results before other ones, then "), std::string::npos) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    const bool several = asked[i].find("--gpus") != std::string::npos;
    EXPECT_EQ(text.find("time/sequence of a GPU  of 2 GPUs") != std::string::npos, several) << text;
  }
}

TEST(Plan, PrintsTheTrainersArguments) {
  const Json plan = planned("--gpu-memory 24GiB --batch 2 --goal fastest");
  const auto has_line = [](const Json& p, const std::string& part) {
    return std::any_of(p["trainer"].begin(), p["trainer"].end(),
                       [&](const Json& line) { return line.get<std::string>().find(part) != std::string::npos; });
  };
  const auto number = [](const Json& n) { return std::to_string(n.get<int>()); };
  const Json& best = plan["plans"][0];
  EXPECT_TRUE(has_line(plan, "per_device_train_batch_size=" + number(best["batch"]) +
                                 ", gradient_accumulation_steps=" + number(best["gradient_accumulation"])))
      << plan["trainer"];
  EXPECT_TRUE(has_line(plan, "AutoModelForImageTextToText.from_pretrained(MODEL, dtype=torch.bfloat16, "));
  EXPECT_FALSE(plan["adapters"]);
  if (under_address_sanitizer) return;  // further plans run the same code
  const Json adapters = planned("--gpu-memory 2.2GiB");
  EXPECT_TRUE(adapters["adapters"]);
  EXPECT_TRUE(has_line(adapters, "LoraConfig(r=16, ")) << adapters["trainer"];
  EXPECT_NE(good(small + "--gpu-memory 2.2GiB").find("\nfull training does not fit, whatever is changed"),
            std::string::npos);
  const Json quantised = planned("--gpu-memory 24GiB --lora 8 --weights nf4 --dtype fp16");
  EXPECT_TRUE(has_line(quantised, "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "));
  EXPECT_TRUE(has_line(quantised, "bnb_4bit_compute_dtype=torch.float16"));
  EXPECT_TRUE(has_line(quantised, "llm_int8_skip_modules=[\"model."));  // names are matched from their beginning
  EXPECT_TRUE(has_line(quantised, ", quantization_config=quantization_config)"));
  EXPECT_FALSE(planned("--gpu-memory 12GiB --phase inference").contains("trainer"));
}

/// Layouts over several GPUs: each one's figures are what its own command says, and those that fit come first.
TEST(Plan, LayoutsAreWhatEstimateSays) {
  const Json all = planned("--gpus 4 --batch 2 --gpu-memory 20GiB --goal fastest --results 40");
  ASSERT_GT(all["layouts"].size(), 8u);
  bool fits = true;
  double rate = std::numeric_limits<double>::infinity();
  std::set<std::string> flags;
  for (std::size_t i = 0; i < all["layouts"].size(); i += one_in(8)) {
    const Json& l = all["layouts"][i];
    EXPECT_TRUE(fits || !l["fits"].get<bool>());
    if (fits != l["fits"].get<bool>()) rate = std::numeric_limits<double>::infinity();
    fits = l["fits"];
    EXPECT_LE(l["tokens_per_s"].get<double>(), rate);
    rate = l["tokens_per_s"];
    EXPECT_TRUE(flags.insert(l["flags"].get<std::string>() + l["checkpointing"].get<std::string>()).second);
    const std::string command = l["estimate"];
    const Json e = Json::parse(good(command.substr(std::string("vlmest ").size()) + " --json"));
    EXPECT_EQ(e["training"]["peak_bytes"], l["peak_bytes"]) << command;
    EXPECT_EQ(e["parallel"]["step_ms"], l["step_ms"]) << command;
    EXPECT_EQ(e["parallel"]["tokens_per_s"], l["tokens_per_s"]) << command;
  }
  const auto tried = [](const Json& plan, const std::string& dimensions) {
    return std::any_of(plan["layouts"].begin(), plan["layouts"].end(), [&](const Json& l) {
      const std::string of = l["flags"];
      return of.find(dimensions) != std::string::npos && of.find("--shard fsdp2") != std::string::npos;
    });
  };
  EXPECT_TRUE(tried(all, "dp=2,pp=2")) << "pipelines whose replicas divide their states";
  refused(small + "--gpu-memory 20GiB --network nvlink4", 2, "--network: has no effect on one GPU",
          "leave it out, or give --gpus N");
  if (under_address_sanitizer) return;  // further plans run the same code
  const Json alone = planned("--gpus 4 --batch 2 --gpu-memory 20GiB --goal fastest --results 40 --threads 1");
  EXPECT_EQ(alone["layouts"], all["layouts"]);
  EXPECT_TRUE(tried(Json::parse(good("plan --gpus 4 --goal fastest --results 99 --json --config " +
                                     std::string(VLMEST_SOURCE_DIR) + "/tests/data/configs/internvl3.5-30b-a3b.json")),
                    "dp=2,ep=2"))
      << "replicas of divided experts";
  const std::string wide = good(small + "--gpus 512 --goal fastest");
  EXPECT_NE(wide.find("laid out over 512 GPUs and nvlink4, of what was asked for, most tokens a second first:"),
            std::string::npos)
      << wide;
  EXPECT_EQ(wide.find("nothing fits"), std::string::npos);
}

TEST(Plan, RefusesAndSaysNo) {
  const Called none = run("plan --config llava-1.5-7b --gpu-memory 2GiB --phase inference --json");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(Json::parse(none.out)["plans"], Json::array());
  EXPECT_EQ(run(small + "--gpu-memory lots").code, 2);
  EXPECT_EQ(run(small + "--gpu-memory 8GiB --goal luck").code, 2);
  EXPECT_EQ(run(small + "--gpu-memory 8GiB --gpus 0").code, 2);
  EXPECT_EQ(run("plan --gpu-memory 8GiB").code, 2);
  refused("plan --config llava-1.5-7b --gpu-memory 30GiB --phase inference --goal max-pixels", 2,
          "--goal: max-pixels: the image processor makes 336x336 of every image",
          "give another goal: max-batch, max-seq or fastest");
}

}  // namespace
}  // namespace cli::cli_plan_test
#endif
