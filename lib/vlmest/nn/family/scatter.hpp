// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/tower.hpp>

/// What the families share that scatter image features into the token embeddings.
namespace vlmest {

/// pixel_values of square tiles: [tiles, channels, side, side] in the activations' type.
inline Value make_pixels(Context& c, const VisionConfig& vision, const Sequences& s) {
  return std::visit(
      [&](const auto& v) {
        std::int64_t tiles = 0;
        for (const auto& i : s.images) tiles = checked_add(tiles, i.tiles);
        const Shape shape{tiles, v.channels, v.image_size, v.image_size};
        return c.b.existing("pixel_values", Role::input, c.dtype(), shape);
      },
      vision);
}

inline TensorId embedding_weight(const Decoder& d) {
  return std::visit([](const auto& v) { return v.embed_tokens; }, d);
}

/// The output head: a linear of its own, or one that shares the token embeddings. Tied or not, its module first
/// allocates a weight; tying drops it once the model is built.
inline Linear make_head(Context& c, std::int64_t hidden, std::int64_t vocab, bool tied, TensorId embedding) {
  Module m(c, "lm_head", Part::language);
  Linear l{.scope = m.scope};
  if (tied) c.b.existing("weight before tying", Role::buffer, c.dtype(), {vocab, hidden});
  l.weight = tied ? embedding : parameter(c, "weight", {vocab, hidden});
  return l;
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

/// get_placeholder_mask: where the placeholder token stands.
inline Value placeholder_mask(Context& c, const Value& input_ids) {
  using namespace eager;
  (void)c;
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
inline PlaceholderMasks placeholder_masks(const Value& input_ids) {
  using namespace eager;
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

}  // namespace vlmest
