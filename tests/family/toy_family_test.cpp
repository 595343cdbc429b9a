// SPDX-License-Identifier: Apache-2.0
// A family is a folder (tests/family/toy) and a row (tests/family/registry.hpp): what is known of it everywhere else is
// made of these.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <vlmest/diagnose/advise/action/image_lever.hpp>
#include <vlmest/diagnose/advise/action/vision_chunk_line.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/json/processor.hpp>
#include <vlmest/report/estimate.hpp>

#include "../../docs/generate/description_schema.hpp"
#include "../../docs/generate/recorder_table.hpp"
#include "registry.hpp"

namespace vlmest::toy_family_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path root = VLMEST_SOURCE_DIR;

const Json config = Json::parse(R"({
  "model_type": "toy",
  "vision_config": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "image_size": 28, "patch_size": 14, "vision_use_head": false},
  "text_config": {"vocab_size": 1000, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
                  "num_attention_heads": 4, "num_key_value_heads": 2}
})");

Vlm read(const Json& document) { return json::read_model(document, "toy.json", registry); }

std::string content(const fs::path& path) {
  std::ostringstream s;
  s << std::ifstream(path).rdbuf();
  return s.str();
}

/// SigLIP: a patch embedding, 4 positions, two layers, the last norm. Llama: embedding and head, two layers, a norm.
TEST(ToyFamily, IsReadAndEstimated) {
  const Vlm vlm = read(config);
  const Device device = load_device(root / "models/device/h200-sxm.json");
  Estimator estimator;
  Plan plan{.text = 10, .new_tokens = 2};
  plan.image_height = 30;
  plan.image_width = 90;
  const Estimate e = estimator(vlm, plan, device);
  const std::int64_t norm = 2 * 64, tower_layer = 4 * (64 * 64 + 64) + 2 * 64 * 128 + 128 + 64 + 2 * norm;
  EXPECT_EQ(e.params.vision.value(), 3 * 14 * 14 * 64 + 64 + 4 * 64 + 2 * tower_layer + norm);
  EXPECT_EQ(e.params.projector.value(), 64 * 128 + 128 + 128 * 128 + 128);
  const std::int64_t text_layer = 2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 256 + 2 * 128;
  EXPECT_EQ(e.params.language.value(), 2 * 1000 * 128 + 2 * text_layer + 128);
  EXPECT_EQ(e.sequences.image_tokens, 3 * 4);  // three squares of four patches
  EXPECT_GT(e.inference.prefill.memory.peak, e.inference.weights);
}

TEST(ToyFamily, IsKnownToTheReadersOfFiles) {
  const Json description = {{"name", "toy"}, {"model", config}, {"image", {{"max_tiles", 2}}}};
  Vlm vlm = read(description);
  EXPECT_EQ(get<toy::Rule>(vlm.image_processor).max_tiles, 2);
  const auto notes = json::read_processor({{"max_tiles", 3}, {"zzz", 1}}, "preprocessor_config.json",
                                          json::ProcessorFile::preprocessor, vlm, registry);
  EXPECT_EQ(get<toy::Rule>(vlm.image_processor).max_tiles, 3);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("zzz"), std::string::npos);
  const auto hint = [](const char* type) {
    try {
      read({{"model_type", type}});
    } catch (const Error& e) {
      return e.hint;
    }
    return std::string();
  };
  EXPECT_EQ(hint("toi").rfind("did you mean 'toy'? known: llava, toy;", 0), 0u);
  EXPECT_EQ(hint("toy_text"), "give the config of the whole model, toy, with plan.images=0");
}

TEST(ToyFamily, HasLevers) {
  diagnose::Settings now{.vlm = read(config)};
  now.plan.batch = 2;
  now.plan.image_height = 30;
  now.plan.image_width = 90;
  const auto less = diagnose::lower_images(now);
  ASSERT_EQ(less.size(), 2u);
  EXPECT_EQ(limit_line(less.back().vlm.image_processor),
            "processor = AutoProcessor.from_pretrained(MODEL, max_tiles=1)");
  EXPECT_EQ(diagnose::vision_rows(now.vlm, now.plan), 2 * 3);
  now.plan.vision_chunk = 3;
  EXPECT_NE(diagnose::vision_chunk_line(now).find("pixel_values.split(3)"), std::string::npos);
}

TEST(ToyFamily, StandsInWhatIsGenerated) {
  const auto shared = generate::load(root / "docs/generate/description.schema.json");
  // llava's part is not below this folder: another registry's schema is asked for with the toy alone.
  const auto schema = generate::description_schema(shared, json::family_rows<toy::Row>, root / "tests/family");
  EXPECT_EQ(schema["properties"]["model"]["properties"]["model_type"]["enum"], generate::Json({"toy"}));
  EXPECT_EQ(schema["$defs"]["toy"]["properties"]["model_type"]["const"], "toy");
  EXPECT_EQ(schema["properties"]["image"]["properties"]["max_tiles"]["description"], "toy");
  EXPECT_THROW(generate::description_schema(shared, registry, root / "tests/family"), std::runtime_error);
  EXPECT_NE(generate::recorder_table(registry).find("    \"toy\": (\"tiles.toy\", 28),\n"), std::string::npos);
}

/// Four files and two lines of the registry, its include and its name. Nothing of the library knows it.
TEST(ToyFamily, IsOneFolderAndOneRow) {
  std::set<std::string> files;
  for (const auto& f : fs::directory_iterator(root / "tests/family/toy")) files.insert(f.path().filename().string());
  EXPECT_EQ(files, (std::set<std::string>{"family.hpp", "read.hpp", "rule.hpp", "schema.json"}));
  std::istringstream lines(content(root / "tests/family/registry.hpp"));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);)
    rows += line.find("toy/") != std::string::npos || line.find("toy::") != std::string::npos;
  EXPECT_EQ(rows, 2u);
  for (const auto& f : fs::recursive_directory_iterator(root / "lib")) {
    EXPECT_TRUE(f.is_directory() || content(f.path()).find("toy::") == std::string::npos) << f.path();
  }
}

}  // namespace
}  // namespace vlmest::toy_family_test
