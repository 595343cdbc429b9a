// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/eager/map_convolution.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/nn/family/anyres.hpp>
#include <vlmest/nn/family/videos.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>

namespace vlmest {

/// What pools the patches of a frame (spatial_pool_mode).
enum class FramePool : std::uint8_t { average, max, conv };

/// LLaVA-NeXT-Video (transformers 5.17 models/llava_next_video): LLaVA-NeXT, and frames of a video as one tile each,
/// pooled between the tower and the projector.
struct LlavaNextVideoFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = true;                        ///< vision_feature_select_strategy "default"
  bool tied = false;
  FramePool pool = FramePool::average;
  std::int64_t stride = 2;           ///< spatial_pool_stride
  std::int64_t channels = 1024;      ///< the tower's width
  std::int64_t out_channels = 1024;  ///< of a convolution

  static constexpr AssemblyTraits assembly{.newline = "image_newline", .takes_videos = true};
};

constexpr FamilyTraits traits(const LlavaNextVideoFamily&) {
  return {.features = feature_calls::sized_images, .videos = VideoPixels::own};
}

/// LlavaNextVideoPooler.
struct FramePooler {
  ScopeId scope = 0, pool_scope = 0;
  PatchConv conv;
};

inline FramePooler make_behind(Context& c, const LlavaNextVideoFamily& g) {
  Module m(c, "vision_resampler", Part::projector);
  FramePooler p{.scope = m.scope, .pool_scope = c.b.child("pool")};
  if (g.pool != FramePool::conv) return p;
  struct Sizes {
    std::int64_t hidden, channels, patch_size;
  };
  p.conv = make_patch_conv(c, "pool", Sizes{g.out_channels, g.channels, g.stride}, true);
  return p;
}

using LlavaNextVideoModel = Assembly<LlavaNextVideoFamily>;

inline AnyresInputs make_inputs(Context& c, const LlavaNextVideoFamily& g, const Sequences& s) {
  Value videos = make_video_pixels(c, g.vision, s);
  AnyresInputs r = make_anyres_inputs(c, g.vision, s);
  r.videos = std::move(videos);
  return r;
}

/// LlavaNextVideoPooler.forward: features[frames, patches, width] -> a quarter of them.
inline Value pool_frames(Context& c, const LlavaNextVideoModel& m, const Value& features, const ImageLayout& l) {
  using namespace eager;
  const LlavaNextVideoFamily& g = *m.config;
  InScope in(c.b, m.behind.scope);
  const std::int64_t frames = features.size(0), width = features.size(2);
  const Value spatial = permute(view(features, {frames, l.patches.rows, l.patches.rows, width}), {0, 3, 1, 2});
  Value pooled;
  if (g.pool == FramePool::conv) {
    const PatchConv& p = m.behind.conv;
    InScope pool(c.b, p.scope);
    pooled = conv2d(spatial, Value(c.b, p.weight), Value(c.b, p.bias), {.stride = g.stride});
  } else {
    InScope pool(c.b, m.behind.pool_scope);
    pooled = g.pool == FramePool::max ? max_pool2d(spatial, g.stride) : avg_pool2d(spatial, g.stride);
  }
  return contiguous(transpose(flatten(pooled, 2, 3), 1, 2));
}

/// Throws Error where a convolution does not take what the tower gives, or gives what the projector does not take.
inline void check_pool(const LlavaNextVideoFamily& g) {
  const std::int64_t in = checked_mul(g.channels, static_cast<std::int64_t>(g.feature_layers.size()));
  if (g.pool == FramePool::conv && (in != g.channels || g.out_channels != g.projector.in))
    throw Error("plan.video", "the convolution that pools frames does not fit the features around it",
                "a model whose vision_feature_layer is one number, and whose spatial_pool_out_channels is the tower's "
                "width, can run");
}

/// modeling_llava_next_video.py, LlavaNextVideoModel.get_video_features: [frames, pooled, width] of all videos.
inline std::vector<Value> video_features(Context& c, const LlavaNextVideoModel& m, const Value& pixels,
                                         const Sequences& s) {
  using namespace eager;
  const ChunkRun call = video_call(c, s);
  const LlavaNextVideoFamily& g = *m.config;
  check_pool(g);
  const std::int64_t frames = pixels.size(1);
  const Value rows = reshape(pixels, {pixels.size(0) * frames, pixels.size(2), pixels.size(3), pixels.size(4)});
  const TowerOutput tower = forward(c, m.vision, {rows, s.videos, true, {}, g.feature_layers});
  Value selected = selected_states(tower, g.feature_layers, g.layer_list);
  if (g.drop_first) selected = slice(selected, 1, 1, selected.size(1));
  Value features = pool_frames(c, m, selected, s.videos.front());
  features = forward(c, m.projector, features);
  return split(features, std::vector<std::int64_t>(s.videos.size(), frames), 0);
}

/// modeling_llava_next_video.py, LlavaNextVideoForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const LlavaNextVideoModel& m, const AnyresInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden, features, videos;  // the output carries the features of both
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    Value lengths, video_mask;
    if (in.pixels) {
      features = joined(batch_features(c, m, in, s));
      features = to(features, embeds.dtype());
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
    }
    if (in.videos) {
      std::vector<Value> each = video_features(c, m, in.videos, s);
      for (Value& v : each) v = flatten(v, 0, 1);
      videos = cat(each, 0);
      each.clear();
      lengths = from_host(c.b, {static_cast<std::int64_t>(s.videos.size())}, DType::int64);
      videos = to(videos, embeds.dtype());
      video_mask = video_placeholder_mask(in.text.ids, masks);
      embeds = masked_scatter(embeds, video_mask, videos);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
