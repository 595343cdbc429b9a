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
        return c.b.existing("pixel_values", Role::input, c.dtype(), {tiles, v.channels, v.image_size, v.image_size});
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
  l.weight = tied ? embedding : parameter(c, "weight", {vocab, hidden});
  return l;
}

/// get_placeholder_mask: where the placeholder token stands; the host checks that there are as many as features
/// (transformers 5.17, torch_compilable_check and the message it formats).
inline Value placeholder_mask(Context& c, const Value& input_ids) {
  using namespace eager;
  (void)c;
  Value mask = compare_scalar("eq.Scalar", input_ids);
  Value count = sum_all(mask);
  mask = unsqueeze(mask, -1);
  Value equal = compare_scalar("eq.Scalar", mul_scalar(count));
  item(count);
  Value all = compare_scalar("_is_all_true", equal);
  item(std::move(all));
  return mask;
}

}  // namespace vlmest
