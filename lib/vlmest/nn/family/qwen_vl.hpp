// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <vlmest/nn/decoder/qwen_vl_text.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// Qwen2-VL and Qwen2.5-VL (transformers models/qwen2_vl, models/qwen2_5_vl): a tower over packed patches, its merged
/// features scattered into the embeddings, positions of three axes.
template <class Vision, class Text = QwenVlTextConfig>
struct QwenVlFamily {
  Vision vision;
  Text language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.vision = "visual", .projector = nullptr};
};
template <class Vision, class Text>
constexpr FamilyTraits traits(const QwenVlFamily<Vision, Text>& g) {
  return {.features = feature_calls::packed, .frames = g.vision.frames, .videos = VideoPixels::own};
}
/// Whether positions in time depend on a video's rate; an overload says yes.
template <class Vision>
constexpr bool spaces_frames(const Vision&) {
  return false;
}

template <class Vision, class Text>
using QwenVlModel = Assembly<QwenVlFamily<Vision, Text>>;

struct QwenVlInputs {
  TextInputs text;
  PackedImages images, videos;
  MropeInputs mrope;
};

template <class Vision>
QwenVlInputs make_qwen_inputs(Context& c, const Vision& vision, const Sequences& s) {
  QwenVlInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (s.images.empty() && s.videos.empty()) return r;
  const auto packed = [&](std::span<const ImageLayout> of, bool videos) {
    return make_packed_images(c, of, vision.channels, vision.frames, vision.patch_size, videos);
  };
  if (!s.images.empty()) r.images = packed(s.images, false);
  if (!s.videos.empty()) r.videos = packed(s.videos, true);
  if (!s.videos.empty() && spaces_frames(vision))
    r.mrope.seconds = c.b.existing("second_per_grid_ts", Role::input, DType::fp32, {s.batch});
  r.mrope.token_types = c.b.existing("mm_token_type_ids", Role::input, DType::int32, {s.batch, s.seq});
  r.mrope.grid = r.images.grid;
  r.mrope.video_grid = r.videos.grid;
  r.mrope.deltas = c.b.existing("rope_deltas", Role::buffer, DType::int64, {s.batch, 1});
  return r;
}
template <class Vision, class Text>
QwenVlInputs make_inputs(Context& c, const QwenVlFamily<Vision, Text>& g, const Sequences& s) {
  return make_qwen_inputs(c, g.vision, s);
}

/// Inputs of the families whose text counts its positions on one axis.
struct PackedInputs {
  TextInputs text;
  PackedImages images, videos;
};
/// `frames`: of a temporal patch.
inline PackedInputs make_packed_inputs(Context& c, std::int64_t channels, std::int64_t frames, std::int64_t patch_size,
                                       const Sequences& s) {
  PackedInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (!s.images.empty()) r.images = make_packed_images(c, s.images, channels, frames, patch_size);
  if (!s.videos.empty()) r.videos = make_packed_images(c, s.videos, channels, frames, patch_size, true);
  return r;
}

/// The merged features of each image, split by sizes that the host reads from the grid.
inline std::vector<Value> split_by_grid(const Value& features, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  Value sizes = floor_divide(reduce("prod.dim_int", DType::int64, {grid.size(0)}, grid));
  to_host(std::move(sizes));
  return split(features, feature_counts(images), 0);
}

/// The host asks the GPU for the patches of each chunk, then pixels and grid are cut.
inline std::vector<VisionChunk<PackedImages>> vision_chunks(Context& c, const PackedImages& in, const Sequences& s) {
  using namespace eager;
  const std::vector<std::int64_t> images = chunk_lengths(s.images.size(), c.plan.vision_chunk);
  std::vector<Sequences> parts = chunk_sequences(s, s.images, c.plan.vision_chunk);
  std::vector<Value> grids = split(in.grid, images, 0);
  std::vector<std::int64_t> patches;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    Value counts = reduce("prod.dim_int", DType::int64, {images[i]}, grids[i]);
    item(sum_all(std::move(counts)));
    patches.push_back(total_patches(parts[i].images));
  }
  std::vector<Value> pixels = split(in.pixels, patches, 0);
  std::vector<VisionChunk<PackedImages>> r;
  for (std::size_t i = 0; i < parts.size(); ++i)
    r.push_back({{std::move(pixels[i]), std::move(grids[i])}, std::move(parts[i])});
  return r;
}

/// modeling_qwen2_vl.py, Qwen2VLModel.get_image_features.
template <class Vision, class Text>
std::vector<Value> image_features(Context& c, const QwenVlModel<Vision, Text>& m, const PackedImages& input,
                                  const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, input, s.images);
  return split_by_grid(tower.pooled, input.grid, s.images);
}

/// What the tower is called with for videos, and what get_video_features keeps beside it to its end.
struct TowerVideos {
  PackedImages input;
  std::vector<ImageLayout> layouts;
  std::vector<Value> kept;
};
/// A family that takes videos apart has an overload.
template <class Vision>
TowerVideos tower_videos(Context&, const Vision&, const PackedImages& input, const Sequences& s) {
  return {input, s.videos, {}};
}

/// modeling_qwen2_vl.py, Qwen2VLModel.get_video_features.
template <class Vision, class Text>
std::vector<Value> video_features(Context& c, const QwenVlModel<Vision, Text>& m, const PackedImages& input,
                                  const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  const TowerVideos videos = tower_videos(c, m.config->vision, input, s);
  const TowerOutput tower = forward(c, m.vision, videos.input, videos.layouts);
  return split_by_grid(tower.pooled, input.grid, s.videos);
}

/// What a forward holds of its pictures and videos until it returns.
struct PlacedFeatures {
  Value images, videos, video_mask;
  PlaceholderMasks masks;
};

/// Merged features of pictures into their placeholders. modeling_qwen2_vl.py, Qwen2VLModel.forward.
inline void place_images(Value& embeds, const Value& ids, std::vector<Value> parts, PlacedFeatures& placed) {
  using namespace eager;
  placed.images = to(cat(parts, 0), embeds.dtype());
  placed.masks = placeholder_masks(ids);
  embeds = masked_scatter(embeds, placed.masks.image, placed.images);
}
/// The same of videos, after the pictures.
inline void place_videos(Value& embeds, const Value& ids, std::vector<Value> parts, PlacedFeatures& placed) {
  using namespace eager;
  placed.videos = to(cat(parts, 0), embeds.dtype());
  placed.video_mask = video_placeholder_mask(ids, placed.masks);
  embeds = masked_scatter(embeds, placed.video_mask, placed.videos);
}

/// modeling_qwen2_vl.py, Qwen2VLForConditionalGeneration.forward over a fresh cache; the inputs' rope_deltas become
/// this call's.
template <class Vision, class Text>
Value prefill(Context& c, const QwenVlModel<Vision, Text>& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value positions;  // variables of the function: alive until it returns
    PlacedFeatures placed;
    if (in.images.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
    if (in.videos.pixels) place_videos(embeds, in.text.ids, video_features(c, m, in.videos, s), placed);
    if (in.mrope.token_types) positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache. generate() passes position_ids[4, B, 1] (modeling_qwen2_vl.py,
/// _prepare_position_ids_for_generation: text positions, then the three axes). `finish` is what the class does to its
/// logits.
template <class Model, class Finish = std::identity>
Value decode_on_axes(Context& c, const Model& m, const TextInputs& in, Cache& cache, Finish finish = {}) {
  using namespace eager;
  const Value positions = c.b.existing("position_ids", Role::input, DType::int64, {4, in.ids.size(0), in.ids.size(1)});
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, slice(positions, 0, 1, 4), in.mask, cache);
  }
  return finish(forward(c, m.head, kept_positions(hidden, Logits::last)));
}
template <class Vision, class Text>
Value decode(Context& c, const QwenVlModel<Vision, Text>& m, const TextInputs& in, Cache& cache) {
  return decode_on_axes(c, m, in, cache);
}

}  // namespace vlmest
