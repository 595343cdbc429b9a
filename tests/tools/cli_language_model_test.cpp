// SPDX-License-Identifier: Apache-2.0
// A language model alone on the command line: flags of images and of the tower are refused, the JSON has no images.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_language_model_test {
namespace {

const std::string config = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256,
  "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000})";

TEST(LanguageModel, HasNoImages) {
  const Json r = Json::parse(good("--config - --json --per-layer --text 64", config));
  EXPECT_EQ(r["inputs"]["images"], 0);
  EXPECT_EQ(r["inputs"]["image_tokens"], 0);
  EXPECT_EQ(r["inputs"]["image_size"], Json({0, 0}));
  EXPECT_EQ(r["inputs"]["seq"], 64);
  const Json& params = r["model"]["params"];
  EXPECT_EQ(params["vision"], 0);
  EXPECT_EQ(params["projector"], 0);
  EXPECT_EQ(params["language"], params["total"]);
  EXPECT_FALSE(params.contains("active"));
  std::set<std::string> scopes;
  for (const auto& l : r["layers"]) scopes.insert(l["scope"]);
  for (const char* scope : {"model", "model.layers.0", "model.layers.1", "lm_head"})
    EXPECT_TRUE(scopes.contains(scope)) << scope;
  good("--config - --images 0 --json", config);
}

TEST(LanguageModel, RefusesFlagsOfPartsThatItLacks) {
  const auto no = [](const std::string& flags, const std::string& flag, const std::string& what) {
    refused("--config - " + flags, 2, flag + ": llama is a plain language model: " + what, "leave " + flag + " out",
            config);
  };
  no("--images 2", "--images", "it takes no images");
  no("--images 1", "--images", "it takes no images");
  no("--image-size 224x224", "--image-size", "it takes no images");
  no("--vision-chunk 2", "--vision-chunk", "it has no vision tower");
  no("--freeze vision", "--freeze", "it has no vision");
  no("--freeze language,projector", "--freeze", "it has no projector");
  no("--lora 8 --lora-vision", "--lora-vision", "it has no vision tower");
  no("--checkpointing vision", "--checkpointing", "it has no vision tower");
}

/// Every action's line means modules that the model has.
TEST(LanguageModel, IsOfferedNothingForImages) {
  const Folder f;
  const std::string path = f.write("config.json", R"({"model_type": "llama"})");
  const std::string log =
      f.write("oom.txt",
              "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a "
              "total capacity of 23.50 GiB of which 1.10 GiB is free. Including non-PyTorch memory, "
              "this process has 22.30 GiB memory in use. Of the allocated memory 21.50 GiB is "
              "allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n");
  const Json d =
      Json::parse(good("diagnose '" + log + "' --config '" + path + "' --phase train --batch 8 --text 4096 --json"));
  std::set<std::string> ids;
  for (const auto& a : d["actions"]) {
    ids.insert(a["id"]);
    for (const char* word : {"vision", "image", "language_model", "pixel"})
      EXPECT_EQ(a["how"].get<std::string>().find(word), std::string::npos) << a["how"];
  }
  EXPECT_TRUE(ids.contains("qlora"));
  EXPECT_TRUE(ids.contains("checkpointing-full"));
  for (const char* id : {"freeze-vision", "vision-chunks", "smaller-images", "fewer-images", "checkpointing-vision"})
    EXPECT_FALSE(ids.contains(id)) << id;
}

TEST(LanguageModel, SaysHowManyParametersAreActive) {
  const std::string experts = R"({"model_type": "qwen3_moe", "num_hidden_layers": 1, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000, "num_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32})";
  const Json params = Json::parse(good("--config - --json --phase inference", experts))["model"]["params"];
  EXPECT_EQ(params["total"].get<int>() - params["active"].get<int>(), 6 * 3 * 32 * 64);
  EXPECT_NE(good("--config - --phase inference", experts).find("experts: "), std::string::npos);
  EXPECT_EQ(good("--config - --phase inference", config).find("experts: "), std::string::npos);
}

}  // namespace
}  // namespace cli::cli_language_model_test
#endif
