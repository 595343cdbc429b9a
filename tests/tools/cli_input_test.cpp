// SPDX-License-Identifier: Apache-2.0
// Models and devices: where they are found, and exit code 3 for what cannot be used.
#include <vlmest/json/families.hpp>
#include <vlmest/json/hf/unread_types.hpp>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_input_test {
namespace {

TEST(Inputs, UnknownNamesAreToldTheNearestOne) {
  refused("--config llava-nxt-7b", 3, "llava-nxt-7b: no such model or file",
          "did you mean llava-next-7b? 'vlmest models' shows all");
  refused("--config llava-nxt-7b.json", 3, "llava-nxt-7b.json: no such model or file",
          "did you mean llava-next-7b? 'vlmest models' shows all");
  refused("--config /nowhere/llava-next-7b", 3, "/nowhere/llava-next-7b: no such model or file",
          "see 'vlmest models' for the shipped ones");
  refused(model + "--device h20-sxm", 3, "--device: unknown device 'h20-sxm'",
          "did you mean h200-sxm? 'vlmest devices' shows all");
  refused("op --device qqqqqqqq", 3, "--device: unknown device 'qqqqqqqq'", "see 'vlmest devices' for the shipped ones",
          "[]");
  refused("op /nowhere/ops.json", 3, "/nowhere/ops.json: cannot be read", "check the path and its permissions");
  refused(model + "--output /nowhere/report", 3, "--output: cannot write /nowhere/report",
          "check the folder and its permissions");
  const Folder f;
  refused("--config '" + f.path.string() + "'", 3, f.path.string() + ": the folder holds no config.json",
          "name a file, or the folder of a checkpoint");
}

TEST(Inputs, UnknownFamiliesAreToldTheKnownOnes) {
  const Called r = run("--config -", R"({"model_type": "llava_previous"})");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.err.rfind("error: standard input.model_type: unknown type 'llava_previous'\nhint: known: ", 0), 0u)
      << r.err;
  for (const char* word : {"llava_next", "qwen2_5_vl", "mllama", "blip-2", "docs/reference"})
    EXPECT_NE(r.err.find(word), std::string::npos) << word;
}

/// Types that people have files of and no reader reads name the nearest one and what is missing.
TEST(Inputs, UnreadTypesAreToldTheNearest) {
  for (const auto& t : vlmest::json::hf::unread_types) {
    EXPECT_EQ(vlmest::json::find_type(vlmest::json::families(), t.type), nullptr) << t.type;
    EXPECT_NE(vlmest::json::find_type(vlmest::json::families(), t.nearest), nullptr) << t.nearest;
  }
  refused("--config -", 3,
          "standard input.model_type: 'ovis' runs by code of the checkpoint's own, which is not modelled",
          "give the config of transformers' class, ovis2", R"({"model_type": "ovis"})");
  const Called r = run("--config -", R"({"model_type": "minicpmo"})");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(
      r.err,
      "error: standard input.model_type: 'minicpmo' is not modelled; missing: sound beside the pictures, and speech\n"
      "hint: nearest: minicpmv; other models can be written in the description format (docs/reference)\n");
}

/// One line says where and what, one what to do; a broken document never gets further.
TEST(Inputs, BrokenDocuments) {
  const std::string whole = slurp(fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / "llava-next-7b.json");
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string s = whole;
    EXPECT_NE(s.find(from), std::string::npos) << from;
    return s.replace(s.find(from), from.size(), to);
  };
  const std::vector<std::string> texts{"",
                                       " \n",
                                       "{",
                                       "nonsense",
                                       "[]",
                                       "7",
                                       "null",
                                       "\"llava\"",
                                       "{}",
                                       "{\"model\": 3}",
                                       "{\"model\": {}}",
                                       "{\"model_type\": 7}",
                                       std::string("\0\1\2\3", 4),
                                       "\xff\xfe{}",
                                       std::string(100000, '['),
                                       "{\"a\":" + std::string(5000, '{'),
                                       whole + "x",
                                       whole.substr(0, whole.size() / 2),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 0"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": -4096"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 4096.5"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 1e400"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 99999999999999999999"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 4611686018427387904"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": [4096]"),
                                       damaged("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 1000000000"),
                                       damaged("\"num_attention_heads\": 32", "\"num_attention_heads\": 31"),
                                       damaged("\"num_key_value_heads\": 32", "\"num_key_value_heads\": 5"),
                                       damaged("\"num_attention_heads\": 16", "\"num_attention_heads\": 15"),
                                       damaged("\"patch_size\": 14", "\"patch_size\": 1000"),
                                       damaged("\"vision_feature_layer\": -2", "\"vision_feature_layer\": 99"),
                                       damaged("[336, 672]", "[336, 671]"),
                                       damaged("\"hidden_act\": \"silu\"", "\"hidden_act\": \"sigh\""),
                                       damaged("\"source\"", "\"sauce\"")};
  for (const auto& text : texts) {
    const Called r = run("--config -", text);
    const std::string shown = text.substr(0, 60);
    EXPECT_EQ(r.code, 3) << shown << "\n" << r.err;
    EXPECT_EQ(r.out, "") << shown;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << shown;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << shown;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << shown << "\n" << r.err;
  }
}

TEST(Inputs, ErrorsNameFileAndKey) {
  const Folder f;
  const std::string bad =
      R"({"model_type": "llava_next", "text_config": {"model_type": "llama", "num_attention_heads": 33}})";
  f.write("checkpoint/config.json", bad);
  f.write("mine.json", bad);
  const std::string folder = "'" + f.path.string() + "/checkpoint'", file = "'" + f.path.string() + "/mine.json'";
  EXPECT_NE(run("--config " + folder).err.find("checkpoint/config.json.text_config.num_attention_heads: "),
            std::string::npos);
  EXPECT_EQ(run("--config " + file).err.rfind("error: mine.json.text_config.num_attention_heads: ", 0), 0u);
}

TEST(Models, AreFoundByNameFileFolderAndInput) {
  const std::string expected = good(model + "--json");
  EXPECT_EQ(good("estimate " + model + "--json"), expected);
  EXPECT_EQ(good("--config llava-next-7b.json --json"), expected);
  EXPECT_EQ(good("--config=llava-next-7b --format=json"), expected);
  EXPECT_EQ(good("--json " + model), expected);
  EXPECT_EQ(good(model + "--json", "", "cd / &&"), expected);
  const fs::path shipped = fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / "llava-next-7b.json";
  EXPECT_EQ(good("--config '" + shipped.string() + "' --json"), expected);
  EXPECT_EQ(good("--config - --json", slurp(shipped)), expected);

  // The assembly alone is a config.json; its folder names the model.
  const std::string config = Json::parse(slurp(shipped))["model"].dump();
  const Folder f;
  f.write("my-model/config.json", config);
  Json named = Json::parse(expected);
  named["model"]["name"] = "my-model";
  EXPECT_EQ(Json::parse(good("--config '" + (f.path / "my-model").string() + "' --json")), named);
  EXPECT_EQ(Json::parse(
                good("--config config.json --json", "", "cd '" + (f.path / "my-model").string() + "' &&"))["inference"],
            named["inference"]);
  EXPECT_EQ(Json::parse(good("--config - --json", config))["inference"], named["inference"]);

  // A file in the way of a shipped name wins.
  f.write("llava-next-7b.json", slurp(shipped.parent_path() / "smolvlm-256m.json"));
  EXPECT_EQ(
      Json::parse(good("--config llava-next-7b.json --json", "", "cd '" + f.path.string() + "' &&"))["model"]["name"],
      "smolvlm-256m");
}

TEST(Models, ShippedOnesMayBeElsewhere) {
  const Folder f;
  const fs::path models = fs::path(VLMEST_SOURCE_DIR) / "models";
  f.write("vlm/mine.json", slurp(models / "vlm" / "smolvlm-256m.json"));
  f.write("device/card.json", slurp(models / "device" / "t4.json"));
  const std::string there = "VLMEST_MODELS='" + f.path.string() + "'";
  EXPECT_NE(good("models --format csv", "", there).find("\nmine,idefics3,"), std::string::npos);
  EXPECT_EQ(Json::parse(good("--config mine --device card --json", "", there))["device"]["name"], "t4");
  EXPECT_EQ(run(model, "", there).code, 3);
}

TEST(Devices, AreFoundByNameFileAndInput) {
  const fs::path t4 = fs::path(VLMEST_SOURCE_DIR) / "models" / "device" / "t4.json";
  const std::string expected = good(model + "--device t4 --json");
  EXPECT_EQ(Json::parse(expected)["device"]["name"], "t4");
  EXPECT_EQ(good(model + "--device '" + t4.string() + "' --json"), expected);
  EXPECT_EQ(good(model + "--device - --json", slurp(t4)), expected);
  EXPECT_EQ(run(model + "--device -", "{}").code, 3);
  EXPECT_EQ(Json::parse(good(model + "--json"))["device"]["name"], "h200-sxm");
}

TEST(Lists, NameWhatIsShipped) {
  for (const std::string kind : {"model", "device"}) {
    std::set<std::string> files;
    for (const auto& e :
         fs::directory_iterator(fs::path(VLMEST_SOURCE_DIR) / "models" / (kind == "model" ? "vlm" : "device")))
      if (e.path().extension() == ".json") files.insert(e.path().stem().string());
    std::set<std::string> listed;
    const Json list = Json::parse(good(kind + "s --json"));
    EXPECT_EQ(list["schema_version"], 1);
    for (const auto& item : list["items"]) listed.insert(item["name"].get<std::string>());
    EXPECT_EQ(listed, files);
    std::istringstream csv(good(kind + "s --format csv"));
    std::string line;
    std::getline(csv, line);
    EXPECT_EQ(line.rfind("name,", 0), 0u);
    std::size_t lines = 0;
    for (; std::getline(csv, line); ++lines) EXPECT_TRUE(files.contains(line.substr(0, line.find(',')))) << line;
    EXPECT_EQ(lines, files.size());
  }
  const Json models = Json::parse(good("models --json"));
  for (const auto& m : models["items"]) {
    const Json doc =
        Json::parse(slurp(fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / (m["name"].get<std::string>() + ".json")));
    EXPECT_EQ(m["params"], doc["expect"]["params"]) << m;
    EXPECT_EQ(m["family"], doc["model"]["model_type"]) << m;
  }
}

}  // namespace
}  // namespace cli::cli_input_test
#endif
