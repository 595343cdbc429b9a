// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <vlmest/graph/eager/view.hpp>
#include <vlmest/library/gpu.hpp>

/// How torch spreads a reduction over threads, as far as it decides what is allocated
/// (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig; recorded peaks of sums and means agree to the byte).
namespace vlmest::eager {

/// Buffers of a reduction that is split over several thread blocks: partial results and one counter per group of
/// blocks.
struct ReductionScratch {
  Bytes partial;
  Bytes semaphores;
};

/// A reduction of `inputs` values for each of `outputs` results.
struct Reduction {
  std::int64_t outputs = 1;
  std::int64_t inputs = 1;
  bool fastest = true;          ///< the reduced dimension is the one with the smallest stride
  std::int64_t output_vec = 1;  ///< results of one thread, where it is not
};

constexpr std::int64_t last_pow2(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

/// Scratch of one reduction with accumulators of `element` bytes. The device matters where the split is limited by the
/// blocks that it runs at a time.
constexpr ReductionScratch reduction_scratch(const Reduction& r, std::int64_t element, const Gpu& device) {
  constexpr std::int64_t warp = 32, max_threads = 512, most_values = 256, least_values = 16;
  if (r.outputs == 0 || r.inputs == 0) return {};
  const auto div_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t limit = max_threads / r.output_vec;
  std::int64_t dim0 = r.fastest ? r.inputs : r.outputs / r.output_vec;
  const std::int64_t dim1 = r.fastest ? r.outputs : r.inputs;
  if (r.fastest && dim0 > 128) dim0 /= 4;  // four inputs a load
  const std::int64_t p0 = dim0 < limit ? last_pow2(std::max<std::int64_t>(1, dim0)) : limit;
  const std::int64_t p1 = dim1 < limit ? last_pow2(std::max<std::int64_t>(1, dim1)) : limit;
  std::int64_t width = std::min(p0, warp);
  const std::int64_t height = std::min(p1, limit / width);
  width = std::min(p0, limit / height);

  std::int64_t step_input = r.fastest ? width : 1, step_output = r.fastest ? 1 : width;
  std::int64_t values = div_up(r.inputs, step_input);
  const bool across_warps = values >= std::min(height * least_values, most_values);
  (across_warps ? step_input : step_output) *= height;
  values = div_up(r.inputs, step_input);

  const std::int64_t target = device.blocks(width * height);
  const std::int64_t grid = div_up(r.outputs / r.output_vec, step_output);
  if (!across_warps || values < most_values || grid > target) return {};
  const std::int64_t blocks =
      std::max(std::min(div_up(target, grid), div_up(values, least_values)), div_up(values, most_values));
  if (blocks <= 1) return {};
  const std::int64_t lanes = r.fastest ? 1 : width * r.output_vec;
  return {.partial = Bytes(checked_mul(checked_mul(element, r.outputs), checked_mul(blocks, lanes))),
          .semaphores = Bytes(checked_mul(4, grid))};
}

/// The dimensions of a reduction as TensorIterator sees them, innermost first: reduced ones first, then by stride;
/// neighbours that continue each other are one (aten/src/ATen/TensorIterator.cpp, reorder_dimensions and
/// coalesce_dimensions). The result is row-major with the reduced dimensions kept at size 1.
struct ReductionDims {
  struct Dim {
    std::int64_t size, in, out;  ///< strides in elements; `out` is 0 where it is reduced
  };
  std::array<Dim, Shape::max_rank> dims{};
  int count = 0;
};
inline ReductionDims reduction_dims(const Tensor& t, const std::array<bool, Shape::max_rank>& reduced) {
  ReductionDims r;
  std::int64_t step = 1;
  for (int i = t.shape.rank() - 1; i >= 0; --i) {
    const bool gone = reduced[static_cast<std::size_t>(i)];
    r.dims[static_cast<std::size_t>(r.count++)] = {t.shape[i], t.strides[i], gone ? 0 : step};
    if (!gone) step = checked_mul(step, t.shape[i]);
  }
  // 1: x comes after y, -1: before, 0: either.
  const auto compare = [](const ReductionDims::Dim& x, const ReductionDims::Dim& y) {
    if ((x.out == 0) != (y.out == 0)) return y.out == 0 ? 1 : -1;
    for (const auto& [a, b] : {std::pair(x.out, y.out), std::pair(x.in, y.in)}) {
      if (a == 0 || b == 0) continue;
      if (a != b) return a > b ? 1 : -1;
      if (x.size > y.size) return 1;
    }
    return 0;
  };
  for (int i = 1; i < r.count; ++i)
    for (int at = i, j = i - 1; j >= 0; --j) {
      auto& x = r.dims[static_cast<std::size_t>(j)];
      auto& y = r.dims[static_cast<std::size_t>(at)];
      const int c = compare(x, y);
      if (c < 0) break;
      if (c > 0) {
        std::swap(x, y);
        at = j;
      }
    }
  if (r.count == 0) return r;
  int last = 0;
  for (int i = 1; i < r.count; ++i) {
    auto& x = r.dims[static_cast<std::size_t>(last)];
    const auto& y = r.dims[static_cast<std::size_t>(i)];
    if (x.size == 1 || y.size == 1 || (x.size * x.in == y.in && x.size * x.out == y.out)) {
      const std::int64_t n = checked_mul(x.size, y.size);
      if (x.size == 1) x = y;
      x.size = n;
    } else {
      r.dims[static_cast<std::size_t>(++last)] = y;
    }
  }
  r.count = last + 1;
  return r;
}

/// Reducing the marked dimensions of t.
inline ReductionScratch reduction_scratch(const Tensor& t, const std::array<bool, Shape::max_rank>& reduced,
                                          std::int64_t element, const Gpu& device) {
  const ReductionDims d = reduction_dims(t, reduced);
  Reduction r;
  int gone = 0;  // the innermost dimensions
  for (int i = 0; i < d.count; ++i) {
    const auto& x = d.dims[static_cast<std::size_t>(i)];
    if (x.out == 0) ++gone;
    (x.out == 0 ? r.inputs : r.outputs) = checked_mul(x.out == 0 ? r.inputs : r.outputs, x.size);
  }
  const auto at = [&](int i) -> const ReductionDims::Dim& { return d.dims[static_cast<std::size_t>(i)]; };
  if (gone == d.count || at(0).in < at(gone).in) return reduction_scratch(r, element, device);
  r.fastest = false;
  if (at(gone).in != 1) return reduction_scratch(r, element, device);
  r.output_vec = 4;
  const auto fits = [&](std::int64_t n) {
    while (n % r.output_vec != 0) r.output_vec /= 2;
  };
  fits(at(gone).size);
  for (int i = 0; i < d.count; ++i)
    if (i != gone) fits(at(i).in);
  return reduction_scratch(r, element, device);
}
/// Reducing one dimension.
inline ReductionScratch reduction_scratch(const Tensor& t, int dim, std::int64_t element, const Gpu& device) {
  std::array<bool, Shape::max_rank> reduced{};
  reduced[static_cast<std::size_t>(wrap(dim, t.shape.rank()))] = true;
  return reduction_scratch(t, reduced, element, device);
}

/// Reducing everything to one value.
constexpr ReductionScratch full_reduction_scratch(std::int64_t n, std::int64_t element, const Gpu& device) {
  return reduction_scratch(Reduction{.inputs = n}, element, device);
}

}  // namespace vlmest::eager
