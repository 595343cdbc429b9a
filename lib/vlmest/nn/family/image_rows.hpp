// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/graph/eager/bucketize.hpp>
#include <vlmest/nn/family/assembly.hpp>

/// Pictures, or tiles of them, that are handed over sequence by sequence, pixel_values[B, rows, channels, H, W].
/// Shorter sequences are filled up with rows of zeros, which the forward finds and leaves out (transformers 5.17
/// models/idefics2, idefics3, smolvlm: get_image_features, inputs_merger).
namespace vlmest {

struct ImageRows {
  TextInputs text;
  Value pixels;
  Value pixel_mask;  ///< [B, rows, H, W] of pixel_attention_mask; none where it is not handed over
};

/// Rows of each sequence of the batch.
inline std::vector<std::int64_t> rows_of(const Sequences& s) {
  std::vector<std::int64_t> r(static_cast<std::size_t>(s.batch), 0);
  if (s.images.size() % r.size() != 0) throw Error("images", "sequences with different numbers of images");
  const std::size_t each = s.images.size() / r.size();
  for (std::size_t i = 0; i < s.images.size(); ++i) r[i / each] = checked_add(r[i / each], s.images[i].tiles);
  return r;
}
/// Rows of all sequences that hold something.
inline std::int64_t filled_rows(const Sequences& s) {
  std::int64_t count = 0;
  for (const std::int64_t n : rows_of(s)) count = checked_add(count, n);
  return count;
}

/// [B, rows of the longest sequence, channels, height, width].
inline Value make_row_pixels(Context& c, const Sequences& s, std::int64_t channels, std::int64_t height,
                             std::int64_t width) {
  const std::vector<std::int64_t> rows = rows_of(s);
  return c.b.existing("pixel_values", Role::input, c.dtype(),
                      {s.batch, *std::max_element(rows.begin(), rows.end()), channels, height, width});
}

/// get_image_features over rows of pixels and of the mask of the same, or none.
inline std::string row_features_line(const std::string&, std::int64_t n) {
  return "import itertools; " +
         feature_calls::image_features(
             "pixel_values, mask=None, cut=lambda t: itertools.repeat(None) if t is None else "
             "t.flatten(0, 1).unsqueeze(0).split(" +
                 std::to_string(n) + ", 1)",
             "torch.cat([f(p, m, **k).pooler_output for p, m in zip(cut(pixel_values), cut(mask))])");
}
inline constexpr FeatureCall row_features{row_features_line, true};

/// The rows of all sequences in one, as t.flatten(0, 1).unsqueeze(0).split(n, 1) cuts them.
inline std::vector<VisionChunk<ImageRows>> vision_chunks(Context& c, const ImageRows& in, const Sequences& s) {
  using namespace eager;
  const std::vector<std::int64_t> rows = rows_of(s);
  if (std::any_of(rows.begin(), rows.end(), [&](std::int64_t n) { return n != rows.front(); }))
    throw Error("plan.vision_chunk",
                "sequences with different numbers of tiles are padded with empty ones, which a call "
                "of its own may hold alone",
                "give images of one size");
  for (const ImageLayout& i : s.images)
    if (i.tiles > 1 && i.real_patches > 0 && i.real_patches < i.tiles * i.patches.count())
      throw Error("plan.vision_chunk", "pieces of a picture that differ in size are not modelled in calls of their own",
                  "leave it out, or give images whose sides are even");
  Sequences one = s;
  one.batch = 1;
  const std::vector<ImageLayout> single = single_tiles(s.images);
  const auto cut = [&](const Value& v) {
    return split(unsqueeze(flatten(v, 0, 1), 0), chunk_lengths(single.size(), c.plan.vision_chunk), 1);
  };
  std::vector<Value> pixels = cut(in.pixels), masks;
  if (in.pixel_mask) masks = cut(in.pixel_mask);
  std::vector<VisionChunk<ImageRows>> r;
  for (Sequences& part : chunk_sequences(one, single, c.plan.vision_chunk)) {
    const std::size_t i = r.size();
    r.push_back({{}, std::move(part)});
    r.back().inputs.pixels = std::move(pixels[i]);
    if (!masks.empty()) r.back().inputs.pixel_mask = std::move(masks[i]);
  }
  return r;
}

/// real_images_inds: of pixels[rows, channels, H, W] those that hold something, bool[rows], true where not all values
/// are zero.
inline Value real_rows(const Value& pixels) {
  using namespace eager;
  Value empty = compare_scalar("eq.Scalar", pixels);
  Value zeros = count_true(std::move(empty), 3);
  return compare_scalar("ne.Scalar", std::move(zeros));
}

/// inputs_merger of Idefics2 and Idefics3: features where the placeholders are.
inline Value merge_rows(const Value& ids, const Value& embeds, const Value& features) {
  using namespace eager;
  Value mask = unsqueeze(compare_scalar("eq.Scalar", ids), -1);
  Value placed = to(features, embeds.dtype());
  return masked_scatter(embeds, mask, placed);
}

/// …ForConditionalGeneration.forward over a fresh cache; `merge`(ids, embeds, features) gives the embeddings with the
/// features in them.
template <class Model, class Merge>
Value prefill_rows(Context& c, const Model& m, const ImageRows& in, const Sequences& s, Cache& cache, Merge&& merge) {
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    if (in.pixels) {
      features = batch_features(c, m, in, s);
      embeds = merge(in.text.ids, embeds, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
