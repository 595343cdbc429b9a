// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava_next_video/family.hpp>
#include <vlmest/family/llava_next_video/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/anyres.hpp>
#include <vlmest/json/processor/anyres.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// spatial_pool_mode.
inline FramePool read_frame_pool(const Reader& r) {
  const std::string mode = r.string("spatial_pool_mode", "average");
  if (mode == "average") return FramePool::average;
  if (mode == "max") return FramePool::max;
  if (mode != "conv") r.fail("spatial_pool_mode", "unknown '" + mode.substr(0, 64) + "'", "known: average, max, conv");
  return FramePool::conv;
}

/// model_type "llava_next_video": transformers 5.17, models/llava_next_video/configuration_llava_next_video.py. Without
/// a vision_config the tower is CLIP-L/14 at 336 pixels, without a text_config the language model is Llama. The native
/// size is the largest square canvas.
inline Vlm read_llava_next_video(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  const LlavaParts parts = read_llava_parts(r, clip, "llama", -2, "default");
  const TowerFacts g = facts(parts.vision);
  check_features_per_patch(r, g, parts.drop_first);
  auto f = family_of<LlavaNextVideoFamily>(parts, parts.tied);
  f.pool = read_frame_pool(r);
  f.stride = r.integer("spatial_pool_stride", 2, 1, 1 << 10);
  f.channels = g.hidden;
  f.out_channels = r.integer("spatial_pool_out_channels", g.hidden, 1, 1 << 20);
  if (f.stride > g.image_size / g.patch_size)
    r.fail("spatial_pool_stride", "larger than the patches of a frame's side");
  const image_processor::LlavaNextVideo defaults;
  const image_processor::LlavaNextVideo rule{
      .image_size = g.image_size,
      .patch_size = g.patch_size,
      .class_token = g.class_token,
      .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full,
      .pinpoints = read_pinpoints(r, defaults.pinpoints, g.image_size),
      .stride = f.stride};
  Vlm m{.type = "llava_next_video"};
  m.native = {g.image_size, g.image_size};
  for (const auto& s : rule.pinpoints)
    if (s.height == s.width && s.height > m.native.height) m.native = s;
  m.image_processor = rule;
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::LlavaNextVideo&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::LlavaNextVideo& rule) { read_anyres_keys(k, rule); }
/// LlavaNextVideoVideoProcessor: frames are one square, whose shorter side is scaled to `size` and cut to `crop_size`.
inline void read_video_keys(ProcessorKeys& k, image_processor::LlavaNextVideo& rule) {
  read_square_keys(k, rule.image_size);
  refuse_num_frames(k);
  k.ignore({"fps", "image_grid_pinpoints"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::LlavaNextVideo& rule) { read_tower_keys(k, rule); }

}  // namespace vlmest::json

namespace vlmest::family {

struct LlavaNextVideo {
  static constexpr std::string_view folder = "llava_next_video";
  static constexpr std::array types{json::ModelType{.type = "llava_next_video",
                                                    .read = json::hf::read_llava_next_video,
                                                    .recorder = json::RecorderInputs{"anyres.llava_next", -1}}};
  using Rules = json::Rules<image_processor::LlavaNextVideo>;
};

}  // namespace vlmest::family
