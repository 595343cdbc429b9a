// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/glm4v_moe_text.hpp>
#include <vlmest/nn/decoder/glm4v_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/glm4v.hpp>

namespace vlmest {

/// GLM-4.1V and GLM-OCR (transformers models/glm4v, models/glm_ocr): Qwen2-VL's assembly, step for step, with a tower
/// and a text model of its own. GLM-4.5V (models/glm4v_moe) has another text model.
using Glm4vFamily = QwenVlFamily<Glm4vVision, Glm4vTextConfig>;
using Glm4vMoeFamily = QwenVlFamily<Glm4vVision, Glm4vMoeTextConfig>;

template <class Text>
constexpr FamilyTraits traits(const QwenVlFamily<Glm4vVision, Text>& g) {
  return {.features = feature_calls::packed,
          .frames = g.vision.frames,
          .videos = VideoPixels::own,
          .videos_alone = "modeling_glm4v.py, get_placeholder_mask, counts the placeholders of both, and fails"};
}

/// modeling_glm4v.py, Glm4vModel.get_video_features: each temporal patch is a picture of its own.
inline TowerVideos tower_videos(Context& c, const Glm4vVision&, const PackedImages& input, const Sequences& s) {
  using namespace eager;
  TowerVideos r;
  for (const ImageLayout& video : s.videos) {
    ImageLayout one = video;
    one.frames = 1;
    r.layouts.insert(r.layouts.end(), static_cast<std::size_t>(video.frames), one);
  }
  const auto n = static_cast<std::int64_t>(r.layouts.size());
  Value index = repeat_interleave_index(select(input.grid, 1, 0), n);
  Value sides = index_select(slice(input.grid, 1, 1, 3), 0, std::move(index));
  Value ones = fill(c.b, "new_ones", {n, 1}, DType::int64);
  r.kept = {sides, ones};
  r.input = {input.pixels, cat(std::move(ones), std::move(sides), 1)};
  return r;
}

}  // namespace vlmest
