// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/nn/decoder/qwen3_vl_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>

/// Features of Qwen3-VL's tower, merged ones and those for the language model's first layers (Qwen3-VL, Qwen3-Omni).
namespace vlmest {

/// What a forward gets of get_image_features, or of get_video_features, which is the same over videos.
struct Qwen3VlImages {
  std::vector<Value> parts;      ///< pooler_output: merged features of each image
  std::vector<Value> deepstack;  ///< of each DeepStack layer, of all images
  TowerOutput tower;
};

/// modeling_qwen3_vl.py, Qwen3VLModel.get_image_features.
inline Qwen3VlImages deepstack_features(Context& c, const Qwen3VlTower& t, const PackedImages& in,
                                        std::span<const ImageLayout> images) {
  Qwen3VlFeatures vision = forward(c, t, in, images);
  std::vector<Value> parts = split_by_grid(vision.tower.pooled, in.grid, images);
  return {std::move(parts), std::move(vision.deepstack), std::move(vision.tower)};
}

/// The same of the batch's pictures, or in chunks: of each call merged and DeepStack features stay; the latter are put
/// together layer by layer.
inline Qwen3VlImages deepstack_batch(Context& c, const Qwen3VlTower& t, const PackedImages& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun one(c, 0, 1 + video_calls(s));
    return deepstack_features(c, t, in, s.images);
  }
  Qwen3VlImages all;
  std::vector<std::vector<Value>> layers;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size() + video_calls(s));
    Qwen3VlImages part = deepstack_features(c, t, chunks[i].inputs, chunks[i].sequences.images);
    std::move(part.parts.begin(), part.parts.end(), std::back_inserter(all.parts));
    layers.resize(part.deepstack.size());
    for (std::size_t l = 0; l < layers.size(); ++l) layers[l].push_back(std::move(part.deepstack[l]));
  }
  std::vector<std::vector<Value>> kept = layers;  // the calls' results live to the end of the function
  for (std::vector<Value>& layer : layers) all.deepstack.push_back(eager::cat(layer, 0));
  return all;
}

/// The DeepStack features of pictures and videos in the order of their places, and the masks of either among them.
struct JoinedDeepstack {
  Deepstack all;
  Value image_rows, video_rows;
};

/// modeling_qwen3_vl.py, Qwen3VLModel.forward, layer by layer. Both masks lose their last dimension, which the caller's
/// variables do too.
inline JoinedDeepstack joined_deepstack(Value& image_mask, Value& video_mask, const Qwen3VlImages& images,
                                        const Qwen3VlImages& videos, std::int64_t of_images, std::int64_t of_videos) {
  using namespace eager;
  JoinedDeepstack r;
  Deepstack& d = r.all;
  image_mask = select(image_mask, -1, 0);
  video_mask = select(video_mask, -1, 0);
  d.mask = pointwise("bitwise_or.Tensor", DType::boolean, image_mask, video_mask);
  d.selected = of_images + of_videos;
  r.image_rows = masked_index(image_mask, d.mask, d.selected);
  r.video_rows = masked_index(video_mask, d.mask, d.selected);
  for (std::size_t i = 0; i < images.deepstack.size(); ++i) {
    const Value &image = images.deepstack[i], &video = videos.deepstack[i];
    Value total = sum_all(d.mask);  // an argument of new_zeros
    item(total);
    Value joint = fill(image.builder(), "new_zeros", {d.selected, image.size(1)}, image.dtype());
    total.reset();
    masked_index_put_(joint, r.image_rows, image, of_images);
    masked_index_put_(joint, r.video_rows, video, of_videos);
    d.features.push_back(std::move(joint));
  }
  return r;
}

/// What goes to the first layers of the features that were placed; `both` keeps what is made where there are pictures
/// and videos.
inline Deepstack deepstack_of(PlacedFeatures& placed, const Qwen3VlImages& images, const Qwen3VlImages& videos,
                              JoinedDeepstack& both) {
  using namespace eager;
  if (placed.images && placed.videos) {
    both = joined_deepstack(placed.masks.image, placed.video_mask, images, videos, placed.images.size(0),
                            placed.videos.size(0));
    return both.all;
  }
  Deepstack d;
  if (!placed.images && !placed.videos) return d;
  const bool pictures = static_cast<bool>(placed.images);
  d.mask = select(pictures ? placed.masks.image : placed.video_mask, -1, 0);
  d.selected = (pictures ? placed.images : placed.videos).size(0);
  d.features = (pictures ? images : videos).deepstack;
  return d;
}

}  // namespace vlmest
