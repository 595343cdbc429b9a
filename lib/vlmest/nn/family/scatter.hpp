// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/nn/block.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/tower.hpp>

/// What the families share that scatter image features into the token embeddings.
namespace vlmest {

/// pixel_values in the activations' type, in the shape that the tower takes.
template <class Vision>
Value make_pixels(Context& c, const Vision& vision, const Sequences& s) {
  return c.b.existing("pixel_values", Role::input, c.dtype(), pixel_shape(vision, s.images));
}
/// image_sizes: height and width of each image in pixels, int64[images, 2].
inline Value make_image_sizes(Context& c, const Sequences& s) {
  return c.b.existing("image_sizes", Role::input, DType::int64, {static_cast<std::int64_t>(s.images.size()), 2});
}

template <class Language>
TensorId embedding_weight(const Language& d) {
  return d.embed_tokens.weight;
}
inline TensorId embedding_weight(const Decoder& d) {
  return std::visit([](const auto& v) { return v.embed_tokens.weight; }, d);
}

/// The output head: a linear of its own, or one that shares the token embeddings. Tied or not, its module first
/// allocates a weight; tying drops it once the model is built.
inline Linear make_head(Context& c, std::int64_t hidden, std::int64_t vocab, bool tied, TensorId embedding,
                        const char* name = "lm_head") {
  Module m(c, name, Part::language);
  c.b.graph.head = m.scope;
  if (!tied) return declare_linear(c, hidden, vocab, false, StoredModule::head);
  Linear l{.scope = m.scope, .adapter = adapter_of(c, hidden, vocab), .style = shard_style(c)};
  InScope own(c.b, base_scope(c, l.adapter, m.scope));
  // Ranks load into a model that was made without memory.
  if (!c.sharding) c.b.existing("weight before tying", Role::buffer, c.dtype(), {vocab, hidden});
  l.weight = embedding;
  return l;
}

/// Features of each image.
inline std::vector<std::int64_t> feature_counts(std::span<const ImageLayout> images) {
  std::vector<std::int64_t> r;
  for (const auto& i : images) r.push_back(i.llm_tokens);
  return r;
}

/// And of all of them.
inline std::int64_t feature_count(std::span<const ImageLayout> images) {
  std::int64_t n = 0;
  for (const auto& i : images) n = checked_add(n, i.llm_tokens);
  return n;
}

/// Features of all images in one row, cut into those of each: the host reads the counts, sizes // cell multiplied
/// (transformers 5.17, modeling_llava.py and modeling_mistral3.py, get_image_features).
inline std::vector<Value> split_by_image(Value features, const Value& image_sizes,
                                         std::span<const ImageLayout> images) {
  using namespace eager;
  Value cells = unary("floor_divide", image_sizes);
  const Shape one = reduced(cells.shape(), -1, false);
  Value counts = reduce("prod.dim_int", DType::int64, one, std::move(cells));
  to_host(std::move(counts));
  return split(std::move(features), feature_counts(images), 0);
}

/// The states that vision_feature_layer names; negative numbers count from the end.
inline const Value& hidden_state(const TowerOutput& tower, std::int64_t layer) {
  const auto n = static_cast<std::int64_t>(tower.hidden_states.size());
  return tower.hidden_states.at(static_cast<std::size_t>(layer < 0 ? layer + n : layer));
}

/// torch_compilable_check that there are as many placeholders as features, with the message it formats (transformers
/// 5.17, utils/import_utils.py).
inline void check_feature_count(const Value& count) {
  using namespace eager;
  Value equal = compare_scalar("eq.Scalar", mul_scalar(count));
  item(count);
  Value all = is_all_true(equal);
  item(std::move(all));
}

/// torch_compilable_check that the placeholders' elements are as many as the features', with the message it formats.
inline void check_features(const Value& embeds, const Value& mask, std::int64_t features, const Value& count) {
  using namespace eager;
  const Value wide = expand(mask, embeds.shape());
  masked_index(embeds, wide, checked_mul(features, embeds.size(-1)));
  item(count);
}

/// get_placeholder_mask: where the placeholder token stands, bool[B, S, 1].
inline Value placeholder_mask(const Value& input_ids) {
  using namespace eager;
  Value mask = compare_scalar("eq.Scalar", input_ids);
  Value count = sum_all(mask);
  mask = unsqueeze(mask, -1);
  check_feature_count(count);
  return mask;
}

/// get_placeholder_mask of the families that also take videos: both masks are made and summed up, only images are held
/// against features. The caller's variables keep both.
struct PlaceholderMasks {
  Value image, video;
};
inline PlaceholderMasks placeholder_masks(const Value& input_ids, bool takes_videos = true) {
  using namespace eager;
  if (!takes_videos) return {placeholder_mask(input_ids), {}};
  PlaceholderMasks m;
  m.image = compare_scalar("eq.Scalar", input_ids);
  m.video = compare_scalar("eq.Scalar", input_ids);
  const Value images = sum_all(m.image);
  m.image = unsqueeze(std::move(m.image), -1);
  check_feature_count(images);
  const Value videos = sum_all(m.video);
  m.video = unsqueeze(std::move(m.video), -1);
  return m;
}

/// The same for features of videos, which are the ones held against their placeholders. `masks` is what the caller has
/// of its pictures: of both results it keeps the video's, and the other one in the place of its unnamed one.
inline Value video_placeholder_mask(const Value& input_ids, PlaceholderMasks& masks) {
  using namespace eager;
  Value image = compare_scalar("eq.Scalar", input_ids);
  Value video = compare_scalar("eq.Scalar", input_ids);
  const Value images = sum_all(image);
  image = unsqueeze(std::move(image), -1);
  const Value videos = sum_all(video);
  video = unsqueeze(std::move(video), -1);
  check_feature_count(videos);
  masks.video = std::move(image);
  return video;
}

}  // namespace vlmest
