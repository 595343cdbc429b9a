// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/routing.hpp>
#include <vlmest/nn/sequence.hpp>

/// How Molmo 2 puts the crops and the windows of a batch, which come one after the other, into one row for each
/// sequence, filled up to the longest (allenai/molmo2 olmo/hf_model/modeling_molmo2.py, Molmo2Model.
/// build_batched_images). The host asks for every count on its way.
namespace vlmest {

/// Of the pictures' tensors.
struct Molmo2Pictures {
  Value pixels;     ///< pixel_values: [crops, patches, pixels]
  Value windows;    ///< image_token_pooling: int64[windows, n]
  Value grids;      ///< image_grids: int64[pictures, 4]
  Value num_crops;  ///< image_num_crops: int64[pictures]
};

struct BatchedPictures {
  Value images;   ///< [B, crops, patches, pixels]
  Value windows;  ///< int64[B, windows, n]
};

/// Pictures of one sequence: how many, and what they have together.
struct PictureCounts {
  std::int64_t pictures = 0, crops = 0, windows = 0;
  std::vector<std::int64_t> each;  ///< windows of each picture
};

/// Every sequence has as many pictures as the others. Throws Error where they cannot.
inline std::vector<PictureCounts> count_pictures(const Sequences& s) {
  const auto all = static_cast<std::int64_t>(s.images.size());
  if (all % s.batch != 0) throw Error("images", "sequences with different numbers of pictures are not modelled");
  const std::int64_t each = all / s.batch;
  std::vector<PictureCounts> r(static_cast<std::size_t>(s.batch));
  for (std::int64_t i = 0; i < all; ++i) {
    const ImageLayout& l = s.images[static_cast<std::size_t>(i)];
    PictureCounts& p = r[static_cast<std::size_t>(i / each)];
    ++p.pictures;
    p.crops = checked_add(p.crops, l.tiles);
    p.windows = checked_add(p.windows, l.llm_tokens);
    p.each.push_back(l.llm_tokens);
  }
  return r;
}

/// The sums of a tensor with an entry for each picture, by sequence.
inline Value sums_by_sequence(Context& c, std::int64_t batch, const Value& of_picture, const Value& of_image) {
  Value sums = eager::fill(c.b, "zeros", {batch}, DType::int64);
  return eager::index_add_(std::move(sums), of_picture, of_image);
}

/// The largest of a tensor's entries, which the host asks for.
inline void ask_largest(const Value& counts) { eager::item(eager::reduce("max", DType::int64, Shape{}, counts)); }
inline void ask_sum(const Value& counts) { eager::item(eager::sum_all(counts)); }

inline BatchedPictures batch_pictures(Context& c, const Value& input_ids, const Molmo2Pictures& in,
                                      const Sequences& s) {
  using namespace eager;
  const std::vector<PictureCounts> of = count_pictures(s);
  const std::int64_t batch = s.batch, n = in.windows.size(1);
  const auto pictures = static_cast<std::int64_t>(s.images.size());
  const Value raw_counts = sum(compare_scalar("eq.Scalar", input_ids), 1, false);
  const Value counts = unary("floor_divide", raw_counts);
  ask_sum(counts);
  const auto product = [&](std::int64_t from) {
    return reduce("prod.dim_int", DType::int64, {pictures}, slice(in.grids, 1, from, from + 2));
  };
  const Value first = product(0);
  const Value second = product(2);
  const Value windows_of_image = add(first, second);
  Value example;
  {
    Value all = arange(c.b, batch);
    Value each = repeat_interleave_index(counts, pictures);
    example = index_select(std::move(all), 0, std::move(each));
  }
  const Value crops_of_example = sums_by_sequence(c, batch, example, in.num_crops);
  const Value patches_of_image = mul_scalar(in.num_crops);
  to_host(counts);
  std::int64_t at = 0;
  for (const PictureCounts& p : of) {
    to_host(cumsum(slice(patches_of_image, 0, at, at + p.pictures), DType::int64));
    at += p.pictures;
  }
  const Value windows_of_example = sums_by_sequence(c, batch, example, windows_of_image);
  ask_sum(crops_of_example);
  ask_sum(windows_of_example);
  ask_largest(crops_of_example);
  std::int64_t most_crops = 0, most_windows = 0;
  for (const PictureCounts& p : of) {
    most_crops = std::max(most_crops, p.crops);
    most_windows = std::max(most_windows, p.windows);
  }
  BatchedPictures r;
  r.images = fill(c.b, "full", {batch, most_crops, in.pixels.size(1), in.pixels.size(2)}, in.pixels.dtype());
  at = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const PictureCounts& p = of[static_cast<std::size_t>(b)];
    item(select(crops_of_example, 0, b));
    Value crops = slice(in.pixels, 0, at, at + p.crops);
    copy_over(slice(select(r.images, 0, b), 0, 0, p.crops), std::move(crops));
    at += p.crops;
  }
  ask_largest(windows_of_example);
  r.windows = fill(c.b, "full", {batch, most_windows, n}, DType::int64);
  Value cur, cur_slice;  // variables of the loops
  std::int64_t from = 0, image = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const PictureCounts& p = of[static_cast<std::size_t>(b)];
    item(select(windows_of_example, 0, b));
    cur = clone(slice(in.windows, 0, from, from + p.windows));
    std::int64_t offset = 0;
    for (const std::int64_t windows : p.each) {
      item(select(windows_of_image, 0, image++));
      cur_slice = slice_view(cur, 0, offset, offset + windows);
      Value is_patch = compare_scalar("ge.Scalar", cur_slice);
      Value moved = add_scalar(cur_slice);
      moved = where(std::move(is_patch), std::move(moved), cur_slice);
      copy_over(slice(cur, 0, offset, offset + windows), std::move(moved));
      offset += windows;
    }
    copy_over(slice(select(r.windows, 0, b), 0, 0, p.windows), cur);
    from += p.windows;
  }
  return r;
}

}  // namespace vlmest
