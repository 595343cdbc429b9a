// SPDX-License-Identifier: Apache-2.0
// The files beside a config.json that set a checkpoint's processor: what each key does to the tokens of a picture, what
// contradicts config.json, what has to be said.
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/json/model.hpp>
#include <vlmest/json/processor.hpp>

namespace vlmest::processor_test {
namespace {

using Json = nlohmann::json;
using json::ProcessorFile;

Vlm published(const std::string& name) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/configs/" + name + ".json");
  return json::read_model(Json::parse(in), name);
}

struct Read {
  Vlm vlm;
  std::vector<std::string> notes;
  std::int64_t tokens(std::int64_t height, std::int64_t width) const {
    return layout(vlm.image_processor, {height, width}).llm_tokens;
  }
};
Read with(const std::string& name, const char* text, ProcessorFile file = ProcessorFile::preprocessor) {
  Read r{published(name), {}};
  r.notes = json::read_processor(Json::parse(text), "p", file, r.vlm);
  return r;
}
/// Where the reader finds fault, and what it says.
std::string refused(const std::string& name, const char* text, ProcessorFile file = ProcessorFile::preprocessor) {
  try {
    with(name, text, file);
  } catch (const Error& e) {
    EXPECT_FALSE(e.hint.empty());
    EXPECT_EQ(e.what_happened.find('\n'), std::string::npos);
    return e.where + ": " + e.what_happened;
  }
  return "accepted";
}

TEST(ProcessorFiles, PixelBudgets) {
  EXPECT_EQ(with("qwen2-vl-2b", R"({"min_pixels": 3136, "max_pixels": 200704})").tokens(1000, 1000), 256);
  EXPECT_EQ(with("qwen2-vl-2b", R"({"size": {"shortest_edge": 3136, "longest_edge": 200704}})").tokens(1000, 1000),
            256);
  // Beside each other, the old names decide.
  EXPECT_EQ(with("qwen2-vl-2b", R"({"max_pixels": 200704, "size": {"shortest_edge": 3136, "longest_edge": 12845056}})")
                .tokens(1000, 1000),
            256);
  // What the file leaves out is the class's own, 1280 tokens at most; without a file it is the released checkpoint's.
  EXPECT_EQ(with("qwen2-vl-2b", R"({"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2})").tokens(2000, 2000),
            1225);
  EXPECT_EQ(layout(published("qwen2-vl-2b").image_processor, {2000, 2000}).llm_tokens, 5041);
  EXPECT_EQ(with("qwen3-vl-4b", R"({"size": {"shortest_edge": 65536, "longest_edge": 262144}})").tokens(2000, 2000),
            256);
  EXPECT_EQ(with("glm-4.1v-9b", R"({"size": {"shortest_edge": 12544, "longest_edge": 401408}})").tokens(2000, 2000),
            256);

  EXPECT_EQ(refused("qwen2-vl-2b", R"({"patch_size": 16})"),
            "p.patch_size: 16, but vision_config.patch_size of config.json makes it 14");
  EXPECT_EQ(refused("qwen2.5-vl-3b", R"({"merge_size": 4})"),
            "p.merge_size: 4, but vision_config.spatial_merge_size of config.json makes it 2");
  EXPECT_EQ(refused("qwen2-vl-2b", R"({"size": {"shortest_edge": 3136}})"),
            "p.size: lacks shortest_edge or longest_edge");
  EXPECT_EQ(refused("qwen2-vl-2b", R"({"min_pixels": 5000, "max_pixels": 4000})"),
            "p.min_pixels: at least 5000 and at most 4000 pixels");
  EXPECT_NE(refused("qwen2-vl-2b", R"({"do_resize": false})").find("p.do_resize: false is not known here"),
            std::string::npos);
}

/// The image processor's own patch_size decides, 16 where the file does not say; the tower must see whole patches.
TEST(ProcessorFiles, OfLightOnOcrSetTheCells) {
  const std::string size = R"("size": {"longest_edge": 1540})";
  const Read r = with("lighton-ocr", ("{" + size + R"(, "patch_size": 28})").c_str());
  EXPECT_EQ(layout(r.vlm.image_processor, {308, 483}).tower_tokens, 22 * 36);
  EXPECT_EQ(
      with("lighton-ocr", ("{" + size + R"(, "patch_size": {"height": 14, "width": 14}})").c_str()).tokens(308, 483),
      11 * 17);
  EXPECT_THROW(with("lighton-ocr", ("{" + size + "}").c_str()).tokens(308, 483), Error);
  EXPECT_EQ(refused("lighton-ocr", R"({"patch_size": {"height": 14, "width": 28}})"), "p.patch_size: is no square");
  EXPECT_EQ(refused("lighton-ocr", R"({"patch_size": 16})", ProcessorFile::processor),
            "p.patch_size: 16, but vision_config.patch_size of config.json makes it 14");
}

TEST(ProcessorFiles, TilesOfCommandAVision) {
  EXPECT_EQ(with("cohere2-vision", R"({"max_patches": 4, "min_patches": 2})").tokens(1080, 1920), 1280);
  EXPECT_EQ(with("cohere2-vision", R"({"crop_to_patches": false})").tokens(1080, 1920), 256);
  EXPECT_EQ(refused("cohere2-vision", R"({"patch_size": 14})"),
            "p.patch_size: 196 tokens of a tile, but config.json makes them 256");
  EXPECT_EQ(refused("cohere2-vision", R"({"size": {"height": 364, "width": 364}})"),
            "p.size: 364x364, but the vision tower takes 512x512");
}

/// The code of these checkpoints cuts pictures itself, by config.json.
TEST(ProcessorFiles, OfInternVlChatSetNoTiles) {
  const char* const config = R"({"model_type": "internvl_chat", "max_dynamic_patch": 6, "min_dynamic_patch": 1,
    "use_thumbnail": true, "dynamic_image_size": true, "downsample_ratio": 0.5, "force_image_size": 448,
    "select_layer": -1, "ps_version": "v2",
    "vision_config": {"hidden_size": 1024, "image_size": 448, "patch_size": 14, "num_hidden_layers": 24,
                      "num_attention_heads": 16, "intermediate_size": 4096},
    "llm_config": {"model_type": "qwen2"}})";
  Vlm vlm = json::read_model(Json::parse(config), "config.json");
  const auto tokens = [&] { return layout(vlm.image_processor, {1344, 1792}).llm_tokens; };
  const std::int64_t alone = tokens();
  const auto notes = json::read_processor(Json::parse(R"({"crop_size": 448, "do_center_crop": true, "size": 448})"),
                                          "p", ProcessorFile::preprocessor, vlm);
  EXPECT_EQ(tokens(), alone);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(ProcessorFiles, Splitting) {
  EXPECT_EQ(layout(published("idefics3-8b").image_processor, {364, 364}).llm_tokens, 2873);
  EXPECT_EQ(with("idefics3-8b", R"({"do_image_splitting": false})").tokens(1000, 1000), 169);
  EXPECT_EQ(with("idefics3-8b", R"({"size": {"longest_edge": 728}})").tokens(364, 364), 5 * 169);
  EXPECT_EQ(with("smolvlm-2.2b", R"({"size": {"longest_edge": 1536}, "max_image_size": {"longest_edge": 384}})")
                .tokens(384, 384),
            17 * 81);
  EXPECT_EQ(refused("idefics3-8b", R"({"max_image_size": {"longest_edge": 300}})"),
            "p.max_image_size: tiles of 300 pixels, but vision_config.image_size of config.json is 364");
  EXPECT_EQ(refused("idefics3-8b", R"({"image_seq_len": 64})", ProcessorFile::processor),
            "p.image_seq_len: 64, but scale_factor of config.json makes it 169");
}

/// The processors of these families pass their own setting to every call, whatever the file says.
TEST(ProcessorFiles, WhatTheProcessorOverrides) {
  const Read intern = with("internvl3-2b", R"({"crop_to_patches": false, "min_patches": 1, "max_patches": 4})");
  EXPECT_EQ(intern.tokens(896, 896), 5 * 256);
  ASSERT_EQ(intern.notes.size(), 1u);
  EXPECT_NE(intern.notes[0].find("crop_to_patches is false"), std::string::npos);
  const Read qianfan = with("qianfan-ocr", R"({"crop_to_patches": false, "max_patches": 4})");
  EXPECT_EQ(qianfan.tokens(896, 896), 5 * 256);
  EXPECT_EQ(qianfan.notes.size(), 1u);
  EXPECT_NE(refused("qianfan-ocr", R"({"image_seq_length": 64})", ProcessorFile::processor), "accepted");
  const Read gemma = with("gemma-3-4b", R"({"do_pan_and_scan": true, "image_seq_length": 256})");
  EXPECT_EQ(gemma.tokens(800, 3000), 256);
  ASSERT_EQ(gemma.notes.size(), 1u);
  EXPECT_NE(gemma.notes[0].find("do_pan_and_scan is true"), std::string::npos);
}

TEST(ProcessorFiles, NativeSizes) {
  EXPECT_EQ(with("pixtral-12b", R"({"size": {"longest_edge": 512}, "patch_size": {"height": 16, "width": 16}})")
                .tokens(1024, 1024),
            32 * 32);
  EXPECT_EQ(with("mistral-small-3.1-24b", R"({"size": {"longest_edge": 560}})").tokens(1024, 1024), 20 * 20);
  EXPECT_EQ(
      refused("mistral-small-3.1-24b", R"({"patch_size": 14, "spatial_merge_size": 1})", ProcessorFile::processor),
      "p.spatial_merge_size: 1, but spatial_merge_size of config.json makes it 2");
}

/// Where the model takes one size, the file can only agree.
TEST(ProcessorFiles, ContradictConfigJson) {
  EXPECT_EQ(
      with("llava-1.5-7b",
           R"({"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}, "do_center_crop": true})")
          .tokens(99, 999),
      576);
  for (const auto& [model, text, where] : {
           std::tuple{"llava-1.5-7b", R"({"crop_size": {"height": 224, "width": 224}})", "p.crop_size"},
           std::tuple{"llava-1.5-7b", R"({"crop_size": 224, "do_center_crop": true})", "p.crop_size"},
           std::tuple{"llava-1.5-7b", R"({"size": {"shortest_edge": 336}, "do_center_crop": false})",
                      "p.do_center_crop"},
           std::tuple{"paligemma-3b-224", R"({"size": {"height": 448, "width": 448}})", "p.size"},
           std::tuple{"paligemma-3b-224", R"({"image_seq_length": 1024})", "p.image_seq_length"},
           std::tuple{"blip2-opt-2.7b", R"({"size": {"height": 364, "width": 364}})", "p.size"},
           std::tuple{"internvl3-2b", R"({"size": {"height": 224, "width": 224}})", "p.size"},
           std::tuple{"aya-vision-8b", R"({"size": 384})", "p.size"},
           std::tuple{"llama-3.2-11b-vision", R"({"max_image_tiles": 6})", "p.max_image_tiles"},
           std::tuple{"llama-3.2-11b-vision", R"({"size": {"height": 448, "width": 448}})", "p.size"},
           std::tuple{"gemma-3-4b", R"({"size": {"height": 448, "width": 448}})", "p.size"},
           std::tuple{"llava-next-vicuna-7b", R"({"image_grid_pinpoints": [[336, 672]]})", "p.image_grid_pinpoints"},
           std::tuple{"llava-onevision-qwen2-7b", R"({"image_grid_pinpoints": [[384, "x"]]})",
                      "p.image_grid_pinpoints"},
           std::tuple{"llava-onevision-qwen2-7b", R"({"size": {"height": 336, "width": 336}})", "p.size"},
       }) {
    const std::string said = refused(model, text);
    EXPECT_EQ(said.substr(0, said.find(": ")), where) << model << " " << text;
  }
  for (const auto& [model, text, where] : {
           std::tuple{"llava-1.5-7b", R"({"num_additional_image_tokens": 0})", "p.num_additional_image_tokens"},
           std::tuple{"llava-1.5-7b", R"({"vision_feature_select_strategy": "full"})",
                      "p.vision_feature_select_strategy"},
           std::tuple{"llava-onevision-qwen2-7b", R"({"vision_aspect_ratio": "anyres_max_4"})",
                      "p.vision_aspect_ratio"},
           std::tuple{"llava-onevision-qwen2-7b", R"({"num_image_tokens": 576})", "p.num_image_tokens"},
           std::tuple{"aya-vision-8b", R"({"patch_size": 14, "downsample_factor": 1})", "p.patch_size"},
           std::tuple{"blip2-opt-2.7b", R"({"num_query_tokens": 64})", "p.num_query_tokens"},
       }) {
    const std::string said = refused(model, text, ProcessorFile::processor);
    EXPECT_EQ(said.substr(0, said.find(": ")), where) << model << " " << text;
  }
}

/// transformers 5 keeps everything in processor_config.json.
TEST(ProcessorFiles, Nested) {
  const char* const text = R"({"processor_class": "Qwen2VLProcessor", "image_token": "<|image_pad|>",
    "image_processor": {"size": {"shortest_edge": 3136, "longest_edge": 200704}, "patch_size": 14},
    "video_processor": {"size": {"shortest_edge": 1, "longest_edge": 2}, "fps": 2}})";
  const Read r = with("qwen2-vl-2b", text, ProcessorFile::processor);
  EXPECT_EQ(r.tokens(1000, 1000), 256);
  EXPECT_TRUE(r.notes.empty());
  EXPECT_TRUE(json::holds_image_processor(Json::parse(text)));
  EXPECT_FALSE(json::holds_image_processor(Json::parse(R"({"image_processor": "x"})")));
  EXPECT_EQ(refused("qwen2-vl-2b", R"({"image_processor": {"patch_size": 7}})", ProcessorFile::processor),
            "p.image_processor.patch_size: 7, but vision_config.patch_size of config.json makes it 14");
}

TEST(ProcessorFiles, UnknownKeysAreNamed) {
  const Read r = with("qwen2-vl-2b", R"({"image_mean": [0, 0, 0], "tile_count": 4, "frames": {"n": 2},
    "image_processor_type": "Qwen2VLImageProcessor", "max_frames": null})");
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(r.notes[0], "p: not understood and not used: frames, tile_count");
}

/// Nothing that a file may hold gets past the reader as anything but an error of one line.
TEST(ProcessorFiles, Hostile) {
  for (const char* model :
       {"qwen2-vl-2b", "idefics2-8b", "idefics3-8b", "llava-1.5-7b", "llava-next-vicuna-7b", "internvl3-2b",
        "pixtral-12b", "gemma-3-4b", "llama-3.2-11b-vision", "aya-vision-8b", "glm-4.1v-9b", "blip2-opt-2.7b"})
    for (const char* key :
         {"size", "crop_size", "max_image_size", "min_pixels", "max_pixels", "patch_size", "merge_size",
          "image_grid_pinpoints", "do_resize", "do_image_splitting", "do_center_crop", "max_patches", "min_patches",
          "max_image_tiles", "image_seq_len", "temporal_patch_size", "do_pan_and_scan"})
      for (const char* value : {"-1", "0", "1e300", "99999999999999999999", "[]", "[1]", "[[1, 2, 3]]", "{}", "\"336\"",
                                "true", "{\"longest_edge\": -5}", "{\"height\": 1e9, \"width\": []}",
                                "{\"longest_edge\": 1048577}", "[1048577, 1]", "{\"height\": 9007199254740993}"}) {
        const std::string text = "{\"" + std::string(key) + "\": " + value + "}";
        for (const auto file : {ProcessorFile::preprocessor, ProcessorFile::processor}) try {
            with(model, text.c_str(), file);
          } catch (const Error& e) {
            EXPECT_EQ((e.where + e.what_happened + e.hint).find('\n'), std::string::npos) << model << " " << text;
            EXPECT_FALSE(e.hint.empty()) << model << " " << text;
          }
      }
  EXPECT_NE(refused("qwen2-vl-2b", "[]"), "accepted");
  EXPECT_NE(refused("qwen2-vl-2b", "null"), "accepted");
  EXPECT_NE(refused("qwen2-vl-2b", R"({"image_processor": []})", ProcessorFile::processor).find("image_processor"),
            std::string::npos);
}

}  // namespace
}  // namespace vlmest::processor_test
