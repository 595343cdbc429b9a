// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/minicpmv4_6/family.hpp>
#include <vlmest/family/minicpmv4_6/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen3_5_text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/minicpmv4_6/configuration_minicpmv4_6.py.
namespace vlmest::json::hf {

/// A kernel of two by two, as an integer or a pair: what merges by others fails in transformers' class.
inline void check_kernel(const Reader& r, const char* key) {
  const std::vector<std::int64_t> k = r.integers(key, {2, 2});
  if (k != std::vector<std::int64_t>{2, 2}) r.fail(key, "transformers' class works with [2, 2] alone", "leave it out");
}

/// downsample_mode: whether the tower merges windows. Any other word than "4x" does so in transformers' class.
inline bool read_merges(const Reader& r) {
  const std::string mode = r.string("downsample_mode", "16x");
  if (mode != "4x" && mode != "16x")
    r.fail("downsample_mode", "'" + mode.substr(0, 64) + "' is no mode", "known: 4x, 16x");
  return mode == "16x";
}

/// model_type "minicpmv4_6".
inline Vlm read_minicpmv4_6(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  if (const std::string text = t.string("model_type", r.given("text_config") ? "" : "qwen3_5_text");
      text != "qwen3_5_text")
    t.fail("model_type", text.empty() ? "missing" : "'" + text + "' is not modelled", "known: qwen3_5_text");
  if (!r.given("image_token_id"))
    r.fail("image_token_id", "missing", "transformers' class passes pictures over without it");
  r.integer("image_token_id", 0, 0, 1 << 30);
  check_kernel(r, "merge_kernel_size");
  check_kernel(v, "window_kernel_size");
  MiniCpmFamily f;
  f.vision = vit(v, f.vision, "gelu_pytorch_tanh");
  f.vision.merges = read_merges(r);
  f.vision.insert_layer = r.integer("insert_layer_id", 6, -1024, 1024);
  if (f.vision.merges && (f.vision.insert_layer < 0 || f.vision.insert_layer >= f.vision.layers))
    r.fail("insert_layer_id",
           std::to_string(f.vision.insert_layer) + " is none of the tower's " + std::to_string(f.vision.layers) +
               " layers",
           "give one of them, or set downsample_mode to 4x");
  f.rounds = r.integer("merger_times", 1, 1, 16);
  f.language = read_qwen3_5_text(t);
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "minicpmv4_6"};
  m.image_processor =
      image_processor::MiniCpm{.patch_size = f.vision.patch_size, .merges = f.vision.merges, .rounds = f.rounds};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::MiniCpm& rule) {
  image.max_tiles(rule.max_tiles);
  image.tiling(rule.tiling);
  rule.video = {rule.max_tiles, rule.tiling};
}
/// What the files of pictures and of videos share.
inline image_processor::Slicing read_slicing(ProcessorKeys& k, const image_processor::MiniCpm& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("scale_resolution", rule.scale, "the image processor's scale_resolution");
  if (const std::string here = k.string("downsample_mode"), there = rule.merges ? "16x" : "4x";
      k.given("downsample_mode") && here != there)
    k.differs("downsample_mode", here.substr(0, 64), "config.json says " + there);
  return {k.integer("max_slice_nums", 9, 1, image_processor::max_tile_count),
          k.boolean("slice_mode", true) ? image_processor::Tiling::automatic : image_processor::Tiling::never};
}
inline void read_image_keys(ProcessorKeys& k, image_processor::MiniCpm& rule) {
  rule.scale = k.integer("scale_resolution", 448, 1, image_processor::max_side);
  const image_processor::Slicing by = read_slicing(k, rule);
  rule.max_tiles = by.max_tiles;
  rule.tiling = by.tiling;
  rule.image_ids = k.boolean("use_image_id", true);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::MiniCpm&) {}
inline void read_video_keys(ProcessorKeys& k, image_processor::MiniCpm& rule) {
  rule.video = read_slicing(k, rule);
  rule.max_frames = k.integer("max_num_frames", 128, 1, image_processor::max_frames);
  if (k.integer("stack_frames", 1, 1, 64) != 1)
    k.fail("stack_frames", "several frames of a second in one picture are not known here", "set it to 1");
  k.ignore({"use_image_id"});  // that of pictures counts
}

}  // namespace vlmest::json

namespace vlmest::family {

struct MiniCpmV46 {
  static constexpr std::string_view folder = "minicpmv4_6";
  static constexpr std::array types{json::ModelType{.type = "minicpmv4_6",
                                                    .read = json::hf::read_minicpmv4_6,
                                                    .recorder = json::RecorderInputs{"native.minicpmv4_6", 448}}};
  using Rules = json::Rules<image_processor::MiniCpm>;
};

}  // namespace vlmest::family
