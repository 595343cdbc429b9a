// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/family/anyres.hpp>
#include <vlmest/nn/family/videos.hpp>

namespace vlmest {

/// LLaVA-OneVision (transformers models/llava_onevision): pictures as tiles, frames of a video as one tile each, whose
/// features are pooled.
struct LlavaOnevisionFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-1};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = false;                       ///< vision_feature_select_strategy "default"
  bool tied = false;

  static constexpr AssemblyTraits assembly{.newline = "image_newline", .takes_videos = true};
};

constexpr FamilyTraits traits(const LlavaOnevisionFamily&) {
  return {.features = feature_calls::sized_images, .videos = VideoPixels::own};
}

inline AnyresInputs make_inputs(Context& c, const LlavaOnevisionFamily& g, const Sequences& s) {
  Value videos = make_video_pixels(c, g.vision, s);
  AnyresInputs r = make_anyres_inputs(c, g.vision, s);
  r.videos = std::move(videos);
  return r;
}

/// modeling_llava_onevision.py, LlavaOnevisionModel.apply_pooling: features[frames, patches, width] -> a quarter of
/// them.
inline Value apply_pooling(const Value& given, const ImageLayout& l) {
  using namespace eager;
  const std::int64_t frames = given.size(0), width = given.size(2);
  Value x = view(given, {frames, l.patches.rows, l.patches.cols, -1});
  x = contiguous(permute(x, {0, 3, 1, 2}));
  x = upsample_bilinear2d(x, l.features.rows, l.features.cols);
  x = permute(x, {0, 2, 3, 1});
  return view(x, {frames, -1, width});
}

struct LlavaOnevisionVideos {
  Value features;  ///< [videos, frames * pooled, width]
  TowerOutput tower;
};

/// modeling_llava_onevision.py, LlavaOnevisionModel.get_video_features.
inline LlavaOnevisionVideos video_features(Context& c, const Assembly<LlavaOnevisionFamily>& m, const Value& pixels,
                                           const Sequences& s) {
  using namespace eager;
  const ChunkRun call = video_call(c, s);
  const LlavaOnevisionFamily& g = *m.config;
  const std::int64_t videos = pixels.size(0), frames = pixels.size(1);
  const Value rows = view(pixels, {videos * frames, pixels.size(2), pixels.size(3), pixels.size(4)});
  LlavaOnevisionVideos r;
  r.tower = forward(c, m.vision, {rows, s.videos, true, {}, g.feature_layers});
  Value selected = selected_states(r.tower, g.feature_layers, g.layer_list);
  if (g.drop_first) selected = slice(selected, 1, 1, selected.size(1));
  r.features = forward(c, m.projector, selected);
  r.features = apply_pooling(r.features, s.videos.front());
  r.features = reshape(r.features, {videos, frames * r.features.size(1), -1});
  return r;
}

/// modeling_llava_onevision.py, LlavaOnevisionForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Assembly<LlavaOnevisionFamily>& m, const AnyresInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden, features, videos;  // the output carries the features of both
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    Value newline, video_mask;
    if (in.pixels) {
      features = joined(batch_features(c, m, in, s));
      features = to(features, embeds.dtype());
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
    }
    if (in.videos) {
      videos = video_features(c, m, in.videos, s).features;
      newline = repeat(unsqueeze(unsqueeze(Value(c.b, m.newline), 0), 0), {videos.size(0), 1, 1});
      videos = cat(std::move(videos), newline, 1);
      videos = to(flatten(videos, 0, 1), embeds.dtype());
      video_mask = video_placeholder_mask(in.text.ids, masks);
      embeds = masked_scatter(embeds, video_mask, videos);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
