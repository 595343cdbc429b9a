// SPDX-License-Identifier: Apache-2.0
// What models, devices and flags are called elsewhere.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_names_test {
namespace {

std::string device_of(const std::string& name) {
  return Json::parse(
      good("--config smolvlm-256m --phase inference --json --top 0 --device '" + name + "'"))["device"]["name"];
}

TEST(Names, OfDevices) {
  for (const auto& [name, device] : std::vector<std::pair<std::string, std::string>>{{"H100", "h100-sxm"},
                                                                                     {"h100", "h100-sxm"},
                                                                                     {"H200-SXM", "h200-sxm"},
                                                                                     {"h200", "h200-sxm"},
                                                                                     {"a100", "a100-80"},
                                                                                     {"A100-40GB", "a100-40"},
                                                                                     {"RTX 4090", "rtx-4090"},
                                                                                     {"rtx_4090", "rtx-4090"},
                                                                                     {"GeForce RTX 5090", "rtx-5090"},
                                                                                     {"L40S", "l40s"},
                                                                                     {"Tesla T4", "t4"}})
    EXPECT_EQ(device_of(name), device) << name;
  refused("--config smolvlm-256m --device h10", 3, "--device: unknown device 'h10'",
          "did you mean h100? 'vlmest devices' shows all");
  std::set<std::string> names;
  const Json devices = Json::parse(good("devices --json"));
  for (const auto& d : devices["items"]) {
    EXPECT_TRUE(names.insert(d["name"]).second);
    for (const auto& alias : d["aliases"]) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
  EXPECT_NE(good("devices").find("a100 a100-80gb"), std::string::npos);
}

TEST(Names, OfModels) {
  const std::string rest = " --phase inference --json --top 0";
  const std::string expected = good("--config qwen2.5-vl-7b" + rest);
  for (const char* name : {"Qwen2.5-VL-7B", "QWEN2.5-VL-7B.json", "Qwen/Qwen2.5-VL-7B-Instruct",
                           "qwen/qwen2.5-vl-7b-instruct", "Qwen2.5-VL-7B-Instruct"})
    EXPECT_EQ(good("--config " + std::string(name) + rest), expected) << name;
  refused("--config Qwen/Qwen9-VL-70B", 3, "Qwen/Qwen9-VL-70B: no such model or file",
          "get its config: hf download Qwen/Qwen9-VL-70B --include '*config.json' --local-dir DIR, then --config DIR");
  const Called near = run("--config Qwen/Qwen2.5-VL-7B-Instuct");
  EXPECT_EQ(near.err.find("\nhint: did you mean Qwen/Qwen2.5-VL-7B-Instruct? else get its config: "),
            near.err.find('\n'));
  // Every id is of one model, and each leads there.
  std::set<std::string> ids;
  const Json models = Json::parse(good("models --json"));
  for (const auto& m : models["items"]) {
    const std::string id = m.value("id", "");
    EXPECT_TRUE(id.empty() || ids.insert(id).second) << id;
  }
  EXPECT_GT(ids.size(), 50u);
  const Folder f;
  EXPECT_EQ(run("--config '" + f.write("x.json", R"({"name": "x", "id": "no-slash", "model": {}})") + "'").code, 3);
}

TEST(Names, OfFlagsElsewhere) {
  const auto hint = [](const std::string& arguments) {
    const Called r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << r.err;
    const auto at = r.err.find("\nhint: ");
    return at == std::string::npos ? r.err : r.err.substr(at + 7, r.err.size() - at - 8);
  };
  for (const auto& [theirs, ours] :
       std::vector<std::pair<std::string, std::string>>{{"--model x", "--config"},
                                                        {"-c x", "--config"},
                                                        {"--model_name_or_path x", "--config"},
                                                        {"--batch-size 4", "--batch"},
                                                        {"-bs 4", "--batch"},
                                                        {"--per_device_train_batch_size 4", "--batch"},
                                                        {"--max-model-len 4096", "--seq"},
                                                        {"--max_seq_length=4096", "--seq"},
                                                        {"--gradient-checkpointing", "--checkpointing full"},
                                                        {"--gradient_accumulation_steps 4", "--gradient-accumulation"},
                                                        {"--bf16", "--dtype bf16"},
                                                        {"--load-in-4bit", "--weights nf4"},
                                                        {"--load_in_8bit", "--weights int8"},
                                                        {"--max-new-tokens 4", "--new-tokens"},
                                                        {"--image_size 3x3", "--image-size"},
                                                        {"--lora_dropout 0.1", "--lora-dropout"},
                                                        {"--attn_implementation sdpa", "--attention"},
                                                        {"--optim sgd", "--optimizer"},
                                                        {"--BATCH 4", "--batch"}}) {
    EXPECT_EQ(hint(theirs), "did you mean " + ours + "?") << theirs;
    EXPECT_EQ(hint("estimate --config smolvlm-256m " + theirs), "did you mean " + ours + "?") << theirs;
  }
  EXPECT_EQ(hint("--config smolvlm-256m --tensor-parallel-size 2"), "did you mean --parallel tp=N?");
  EXPECT_EQ(hint("plan --config smolvlm-256m --num_gpus 2"), "did you mean --gpus?");
  EXPECT_EQ(hint("--config smolvlm-256m --gpu-memory 24GiB"),
            "'vlmest plan --gpu-memory SIZE' looks for settings that fit a memory size");
}

}  // namespace
}  // namespace cli::cli_names_test
#endif
