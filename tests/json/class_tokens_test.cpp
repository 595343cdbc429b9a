// SPDX-License-Identifier: Apache-2.0
// Tokens of pictures and videos against those of transformers' processor classes: tests/data/class_tokens.json.
#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/family/aria/rule.hpp>
#include <vlmest/family/dots_ocr/rule.hpp>
#include <vlmest/family/ernie4_5_vl_moe/rule.hpp>
#include <vlmest/family/fast_vlm/rule.hpp>
#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/family/hunyuan_vl/rule.hpp>
#include <vlmest/family/idefics2/rule.hpp>
#include <vlmest/family/kimi_vl/rule.hpp>
#include <vlmest/family/llama4/rule.hpp>
#include <vlmest/family/minicpmv/rule.hpp>
#include <vlmest/family/minicpmv4_6/rule.hpp>
#include <vlmest/family/minimax_m3_vl/rule.hpp>
#include <vlmest/family/molmo2/rule.hpp>
#include <vlmest/family/muse_glimmer/rule.hpp>
#include <vlmest/family/nemotron_h_vl/rule.hpp>
#include <vlmest/family/paddleocr_vl/rule.hpp>
#include <vlmest/family/perception_lm/rule.hpp>
#include <vlmest/family/phi3_v/rule.hpp>
#include <vlmest/family/phi4_multimodal/rule.hpp>
#include <vlmest/family/step3p7/rule.hpp>
#include <vlmest/family/video_llama_3/rule.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>

namespace vlmest::class_tokens_test {
namespace {

using nlohmann::json;
using namespace image_processor;
using image_processor::Tiling;

PixelBudget budget(const json& s, PixelBudget of_class) {
  return {s.value("min_pixels", of_class.min_pixels), s.value("max_pixels", of_class.max_pixels)};
}
template <class Rule>
Rule sized(Rule rule, const json& s, PixelBudget of_class) {
  rule.budget = budget(s, of_class);
  rule.patch_size = s.value("patch_size", rule.patch_size);
  rule.merge = s.value("merge_size", rule.merge);
  return rule;
}
MiniCpm sliced(const json& s) {
  MiniCpm r{.patch_size = s.value("patch_size", 14), .scale = s.value("scale_resolution", 448)};
  r.max_tiles = s.value("max_slice_nums", 9);
  r.tiling = s.value("slice_mode", true) ? Tiling::automatic : Tiling::never;
  r.image_ids = false;  // the text of one picture
  r.video = {r.max_tiles, r.tiling};
  r.merges = s.value("downsample_mode", "16x") != "4x";
  return r;
}

Aria squares(const json& s) {
  Aria r{.image_size = s.value("max_image_size", 980)};
  r.tiling = s.value("split_image", false) ? Tiling::automatic : Tiling::never;
  if (!s.contains("split_resolutions")) return r;
  r.canvases.clear();
  for (const json& e : s.at("split_resolutions")) r.canvases.push_back({e[0], e[1]});
  return r;
}

/// Patches of one pixel show the size to which the pieces are padded.
Idefics2 pieces_of(const json& s) {
  return {.patch_size = 1,
          .shortest_edge = s.value("shortest_edge", 378),
          .longest_edge = s.value("longest_edge", 980),
          .tiling = s.value("do_image_splitting", false) ? Tiling::automatic : Tiling::never};
}

MuseGlimmer grids(const json& s) {
  return {.patch_size = s.value("patch_size", 14),
          .merge = s.value("merge_size", 2),
          .max_image_tokens = s.value("max_image_tokens", 4096),
          .max_frame_tokens = s.value("max_video_frame_tokens", 144),
          .num_frames = s.value("num_frames", 96),
          .fps = s.value("fps", 2.0)};
}

Ernie4_5Vl rounded(const json& s) {
  Ernie4_5Vl r{.patch_size = s.value("patch_size", 14), .merge = s.value("merge_size", 2)};
  r.budget = budget(s, r.budget);
  r.video.budget = budget(s, r.video.budget);
  r.video.min_frames = s.value("min_frames", r.video.min_frames);
  r.video.max_frames = s.value("max_frames", r.video.max_frames);
  return r;
}

constexpr PixelBudget qwen2_class{56 * 56, 28 * 28 * 1280};

ImageProcessor image_rule(const std::string& type, const json& s) {
  if (type == "aria") return squares(s);
  if (type == "exaone4_5") return sized(Qwen2_5Vl{}, s, qwen2_class);
  if (type == "dots_ocr") return sized(DotsOcr{}, s, DotsOcr{}.budget);
  if (type == "NemotronH_Nano_VL_V2")
    return NemotronHVl{.image_size = s.value("image_size", 512),
                       .max_tiles = s.value("max_num_tiles", 12),
                       .thumbnail = s.value("use_thumbnail", true)};
  if (type == "minicpmv4_6") return sliced(s);
  if (type == "minicpmv")
    return MiniCpmV{.patch_size = s.value("patch_size", 14),
                    .scale = s.value("scale_resolution", 448),
                    .max_tiles = s.value("max_slice_nums", 9),
                    .queries = s.value("query_num", 64),
                    .image_ids = s.value("use_image_id", true)};
  if (type == "phi3_v") return Phi3V{.max_tiles = s.value("num_crops", 4)};
  if (type == "idefics2") return pieces_of(s);
  if (type == "muse_glimmer") return grids(s);
  if (type == "ernie4_5_vl_moe") return rounded(s);
  if (type == "minimax_m3_vl") return sized(MiniMaxM3Vl{}, s, MiniMaxM3Vl{}.budget);
  if (type == "phi4_multimodal")
    return Phi4Multimodal{.crop_size = s.value("size", 448),
                          .patch_size = s.value("patch_size", 14),
                          .max_tiles = s.value("dynamic_hd", 36)};
  if (type == "kimi_vl") {
    const json merge = s.value("merge_kernel_size", json{2, 2});
    return KimiVl{.patch_size = s.value("patch_size", 14),
                  .merge_rows = merge[0],
                  .merge_cols = merge[1],
                  .in_token_limit = s.value("in_token_limit", 4096),
                  .pad_input = s.value("pad_input", false)};
  }
  if (type == "fast_vlm")
    return FastVlm{.image_size = s.value("crop_size", 1024), .patch_size = s.value("patch_size", 64)};
  if (type == "perception_lm")
    return PerceptionLm{.tile_size = s.value("tile_size", 448),
                        .patch_size = s.value("patch_size", 14),
                        .pool = s.value("pooling_ratio", 2),
                        .max_tiles = s.value("max_num_tiles", 36),
                        .tiling = s.contains("vision_input_type") ? Tiling::never : Tiling::automatic};
  if (type == "molmo2") {
    const auto pair = [&](const char* key, Grid absent) {
      return s.contains(key) ? Grid{s.at(key)[0], s.at(key)[1]} : absent;
    };
    const bool columns = s.value("image_use_col_tokens", true);
    return Molmo2{.image_size = s.value("size", 378),
                  .max_tiles = s.value("max_crops", 8),
                  .margins = pair("overlap_margins", {4, 4}),
                  .pool = pair("pooling_size", {2, 2}),
                  .columns = columns,
                  .whole_columns = s.value("use_single_crop_col_tokens", columns)};
  }
  if (type == "step3p7")
    return Step3p7{.size = s.contains("size") ? s.at("size").at("height").get<std::int64_t>() : 728,
                   .tile = s.value("patch_size", 504),
                   .longest_edge = s.value("max_image_size", 3024),
                   .patch_size = s.value("vision_patch_size", 14)};
  if (type == "paddleocr_vl") return sized(PaddleOcr{}, s, PaddleOcr{}.budget);
  if (type == "hunyuan_vl") return sized(HunYuan{}, s, HunYuan{}.budget);
  if (type == "video_llama_3") return sized(VideoLlama3{}, s, VideoLlama3{}.budget);
  if (type == "cohere_compass" || type == "cosmos3_omni") return sized(Qwen3Vl{.patch_size = 14}, s, qwen2_class);
  if (type == "llama4")
    return Llama4{.max_tiles = s.value("max_patches", 16), .enlarge = s.value("resize_to_max_canvas", false)};
  if (type == "glmga") {
    Glm4v r{.glmga = true, .expand = s.value("patch_expand_factor", 1)};
    r.budget = budget(s, r.budget);
    return r;
  }
  throw std::runtime_error("no rule for " + type);
}
ImageProcessor video_rule(const std::string& type, const json& s) {
  if (type == "exaone4_5")
    return Qwen2_5Vl{.video = {.budget = budget(s, {128 * 28 * 28, 28 * 28 * 768}), .max_video_tokens = 128000}};
  if (type == "minicpmv4_6") return sliced(s);
  if (type == "minimax_m3_vl")
    return MiniMaxM3Vl{.patch_size = s.value("patch_size", 14),
                       .merge = s.value("merge_size", 2),
                       .temporal_patch_size = s.value("temporal_patch_size", 2)};
  if (type == "ernie4_5_vl_moe") return rounded(s);
  if (type == "perception_lm") return PerceptionLm{.tile_size = s.value("size", 448)};
  if (type == "muse_glimmer") return grids(s);
  if (type == "video_llama_3") return VideoLlama3{};
  if (type == "cohere_compass") return Qwen3Vl{.video = {.budget = {128 * 32 * 32, 32 * 32 * 768}, .fps = 2}};
  if (type == "glmga") return Glm4v{.glmga = true, .expand = s.value("patch_expand_factor", 1)};
  throw std::runtime_error("no rule for " + type);
}
json file() { return json::parse(std::ifstream(VLMEST_SOURCE_DIR "/tests/data/class_tokens.json")); }

TEST(ClassTokens, OfPicturesAreThoseOfTheClasses) {
  const json all = file();
  int rows = 0;
  for (const auto& [type, settings] : all.at("images").items())
    for (const json& setting : settings) {
      const ImageProcessor rule = image_rule(type, setting.at("settings"));
      for (const json& row : setting.at("rows")) {
        ++rows;
        json got{row[0], row[1]};
        try {
          const ImageLayout l = layout(rule, ImageSize{row[0], row[1]});
          got.insert(got.end(), {l.llm_tokens, l.text_overhead, l.tiles, l.patches.rows, l.patches.cols, l.slices.rows,
                                 l.slices.cols});
        } catch (const Error&) {
          got.push_back(nullptr);
        }
        EXPECT_EQ(got, row) << type << " " << setting.at("settings");
      }
    }
  EXPECT_EQ(rows, 9154);
}

/// A layout as the file has it.
json result(const std::string& type, const ImageProcessor& rule, const VideoSource& video) {
  try {
    const ImageLayout l = video_layout(rule, video);
    if (type == "minicpmv4_6") return {l.llm_tokens, l.frames, l.tiles, l.patches.rows, l.patches.cols};
    return {l.llm_tokens, l.frames, l.patches.rows, l.patches.cols};
  } catch (const Error&) {
    return nullptr;
  }
}

TEST(ClassTokens, OfVideosAreThoseOfTheClasses) {
  const json all = file();
  int rows = 0;
  for (const auto& [type, settings] : all.at("videos").items())
    for (const json& setting : settings) {
      const ImageProcessor rule = video_rule(type, setting.at("settings"));
      for (const json& c : setting.at("given")) {
        ++rows;
        EXPECT_EQ(result(type, rule, {.size = {c[1], c[2]}, .frames = c[0], .fps = c[3]}), c[4])
            << type << " " << setting.at("settings") << " " << c;
      }
      const OwnSampling own = own_sampling(rule);
      for (const json& c : setting.at("sampled")) {
        ++rows;
        std::optional<double> take = own.every_frame ? std::optional(c[1].get<double>()) : own.fps;
        // MiniCPM-V 4.6's and GLM's processors do not read what they are asked for.
        if (!c[2].is_null() && type != "minicpmv4_6") take = c[2].get<double>();
        const VideoSource video{.size = {c[3], c[4]}, .frames = c[0], .fps = c[1], .take = take};
        EXPECT_EQ(take ? result(type, rule, video) : json(), c[5]) << type << " " << setting.at("settings") << " " << c;
      }
    }
  EXPECT_EQ(rows, 1708);
}

}  // namespace
}  // namespace vlmest::class_tokens_test
