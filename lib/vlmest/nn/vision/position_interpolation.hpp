// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/graph/eager.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

/// A square table of learned position embeddings, resampled to the grid of each image: some entries of the table and
/// their weights for every patch (transformers 5.17 vision_utils.py).
namespace vlmest {

/// Which entries: four, bilinearly with aligned corners; sixteen, bicubically without; or four without, of which those
/// that lie outside of the table weigh nothing (what F.grid_sample calls zeros).
enum class Resampling : std::uint8_t { bilinear, bicubic, bilinear_zeros };
constexpr std::int64_t taps_of(Resampling r) { return r == Resampling::bicubic ? 4 : 2; }

struct Interpolation {
  Value indices;  ///< int64[patches, taps^2], into the flattened table
  Value weights;  ///< fp32[patches, taps^2]
};

/// The kernel of Keys (1981) with a = -0.75 at distances[patches, 4]: both of its branches, of which one is chosen.
inline Value bicubic_weights(const Value& distance) {
  using namespace eager;
  Value near = sub_scalar(mul_scalar(distance));
  near = mul(std::move(near), distance);
  near = mul(std::move(near), distance);
  near = add_scalar(std::move(near));
  Value far = sub_scalar(mul_scalar(distance));
  far = add_scalar(mul(std::move(far), distance));
  far = sub_scalar(mul(std::move(far), distance));
  Value close = compare_scalar("le.Scalar", distance);
  return where(std::move(close), near, far);
}

/// vision_utils.py, _interpolation_axis_taps_weights: for a place on an axis of length `size`
/// (int64[patches] each) its neighbours and their weights, [patches, taps].
inline Interpolation axis_taps(Context& c, const Value& place, const Value& size, Resampling how) {
  using namespace eager;
  const bool cubic = how == Resampling::bicubic;
  Value index = to(place, DType::fp32);
  Value source;
  if (how != Resampling::bilinear) {
    Value scaled = mul_scalar(add_scalar(index));
    source = sub_scalar(div(std::move(scaled), size));
  } else {
    Value scaled = mul_scalar(index);
    Value last = unary("clamp", sub_scalar(size));
    source = div(std::move(scaled), std::move(last));
  }
  Value floor = unary("floor", source);
  Value offsets = fill(c.b, "arange.start", {taps_of(how)}, DType::int64);
  Value taps = add(unsqueeze(to(floor, DType::int64), 1), offsets);
  Interpolation r;
  r.indices = unary("clamp", taps);
  Value fraction = sub(unsqueeze(source, 1), unsqueeze(floor, 1));
  Value distance = unary("abs", sub(std::move(fraction), offsets));
  r.weights = cubic ? bicubic_weights(distance) : unary("clamp", unary("rsub.Scalar", distance));
  if (how == Resampling::bilinear_zeros) {
    Value above = compare_scalar("ge.Scalar", taps);
    Value below = compare_scalar("le.Scalar", taps);
    r.weights = mul(r.weights, compare("bitwise_and.Tensor", std::move(above), std::move(below)));
  }
  return r;
}

/// tensor.repeat_interleave(repeats): the index, then a gather.
inline Value repeat_entries(Value a, const Value& repeats, std::int64_t total) {
  Value index = eager::repeat_interleave_index(repeats, total);
  return eager::index_select(std::move(a), 0, std::move(index));
}

/// vision_utils.py, get_vision_interpolation_indices_and_weights: patches in the order in which they are merged. All
/// intermediate vectors are variables of the function.
inline Interpolation interpolate_positions(Context& c, const Value& grid, std::span<const ImageLayout> images,
                                           Resampling how = Resampling::bilinear) {
  using namespace eager;
  const std::int64_t patches = total_patches(images), n = grid.size(0);
  Value area = mul(select(grid, 1, 0), select(grid, 1, 1));
  Value counts = mul(std::move(area), select(grid, 1, 2));
  Value heights = repeat_entries(select(grid, 1, 1), counts, patches);
  Value widths = repeat_entries(select(grid, 1, 2), counts, patches);
  Value starts;
  {
    Value ends = slice(cumsum(counts, DType::int64), 0, 0, n - 1);
    starts = repeat_entries(constant_pad(std::move(ends), n), counts, patches);
  }
  Value within;
  {
    Value total = sum_all(counts);
    item(total);
    Value all = arange(c.b, patches);
    total.reset();
    Value relative = sub(std::move(all), starts);
    Value frame = mul(heights, widths);
    within = pointwise("remainder.Tensor", DType::int64, std::move(relative), std::move(frame));
  }
  const auto divide = [](const Value& a) { return unary("floor_divide", a); };
  const auto remainder = [](Value a) { return unary("remainder.Scalar", std::move(a)); };
  Value blocks_w = divide(widths);
  Value in_col = remainder(within);
  Value in_row = remainder(divide(within));
  Value block_col = pointwise("remainder.Tensor", DType::int64, divide(within), blocks_w);
  Value block_row;
  {
    Value per_row = mul_scalar(blocks_w);
    block_row = pointwise("floor_divide", DType::int64, within, std::move(per_row));
  }
  Value row = add(mul_scalar(block_row), in_row);
  Value col = add(mul_scalar(block_col), in_col);
  const Interpolation h = axis_taps(c, row, heights, how);
  const Interpolation w = axis_taps(c, col, widths, how);
  const std::int64_t taps = taps_of(how) * taps_of(how);
  Interpolation r;
  r.indices = view(add(mul_scalar(unsqueeze(h.indices, 2)), unsqueeze(w.indices, 1)), {-1, taps});
  r.weights = view(mul(unsqueeze(h.weights, 2), unsqueeze(w.weights, 1)), {-1, taps});
  return r;
}

}  // namespace vlmest
