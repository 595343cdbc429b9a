// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/decoder/qwen3_vl_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>

/// Qwen3-VL's assembly, around its own text model or Cohere's: merged features of the tower's last layer scattered into
/// the embeddings, those of earlier layers added behind the decoder's first layers (DeepStack), positions of three
/// axes.
namespace vlmest {

/// As feature_calls::packed, with a list of DeepStack features beside it, one tensor for each layer:
/// modeling_qwen3_vl.py, modeling_qwen3_vl_moe.py.
inline std::string deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models." + type + ".modeling_" + type +
         " import BaseModelOutputWithDeepstackFeatures; " +
         feature_calls::wrapped(
             "model.model.get_image_features", "pixel_values, grid",
             "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
             "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
             "\"deepstack_features\")(f(p, g, **k)) " +
                 feature_calls::packed_pairs(n) + "])");
}
/// What a forward gets of get_image_features, or of get_video_features, which is the same over videos.
struct Qwen3VlImages {
  std::vector<Value> parts;      ///< pooler_output: merged features of each image
  std::vector<Value> deepstack;  ///< of each DeepStack layer, of all images
  TowerOutput tower;
};

/// modeling_qwen3_vl.py, Qwen3VLModel.get_image_features.
template <class Model>
Qwen3VlImages features_of(Context& c, const Model& m, const PackedImages& in, std::span<const ImageLayout> images) {
  Qwen3VlFeatures vision = forward(c, m.vision, in, images);
  std::vector<Value> parts = split_by_grid(vision.tower.pooled, in.grid, images);
  return {std::move(parts), std::move(vision.deepstack), std::move(vision.tower)};
}
template <class Model>
Qwen3VlImages deepstack_video_features(Context& c, const Model& m, const PackedImages& in, const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  return features_of(c, m, in, s.videos);
}

/// The same in chunks: of each call merged and DeepStack features stay; the latter are put together layer by layer.
template <class Model>
Qwen3VlImages deepstack_image_features(Context& c, const Model& m, const PackedImages& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun one(c, 0, 1 + video_calls(s));
    return features_of(c, m, in, s.images);
  }
  Qwen3VlImages all;
  std::vector<std::vector<Value>> layers;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size() + video_calls(s));
    Qwen3VlImages part = features_of(c, m, chunks[i].inputs, chunks[i].sequences.images);
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

/// modeling_qwen3_vl.py, Qwen3VLModel.forward over a fresh cache: normed hidden states; the inputs' rope_deltas become
/// this call's.
template <class Model>
Value deepstack_hidden(Context& c, const Model& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, in.text.ids);
  Qwen3VlImages vision, frames;  // variables of the function: alive until it returns
  PlacedFeatures placed;
  Value positions;
  Deepstack deepstack;
  JoinedDeepstack both;
  if (in.images.pixels) {
    vision = deepstack_image_features(c, m, in.images, s);
    place_images(embeds, in.text.ids, vision.parts, placed);
  }
  if (in.videos.pixels) {
    frames = deepstack_video_features(c, m, in.videos, s);
    place_videos(embeds, in.text.ids, frames.parts, placed);
  }
  if (placed.images && placed.videos) {
    both = joined_deepstack(placed.masks.image, placed.video_mask, vision, frames, placed.images.size(0),
                            placed.videos.size(0));
    deepstack = both.all;
  } else if (placed.images || placed.videos) {
    const bool pictures = static_cast<bool>(placed.images);
    deepstack.mask = select(pictures ? placed.masks.image : placed.video_mask, -1, 0);
    deepstack.selected = (pictures ? placed.images : placed.videos).size(0);
    deepstack.features = (pictures ? vision : frames).deepstack;
  }
  if (in.mrope.token_types) positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
  return forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
}

}  // namespace vlmest
