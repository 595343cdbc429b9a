// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include <vlmest/graph/eager/view.hpp>

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

/// Scratch of one reduction with accumulators of `element` bytes; 132 multiprocessors of 2048 threads are an H100's and
/// an H200's, and matter only where the split is limited by the blocks that fit.
constexpr ReductionScratch reduction_scratch(const Reduction& r, std::int64_t element,
                                             std::int64_t multiprocessors = 132) {
  constexpr std::int64_t warp = 32, max_threads = 512, most_values = 256, least_values = 16, threads_per_sm = 2048;
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

  const std::int64_t target = multiprocessors * (threads_per_sm / (width * height));
  const std::int64_t grid = div_up(r.outputs / r.output_vec, step_output);
  if (!across_warps || values < most_values || grid > target) return {};
  const std::int64_t blocks =
      std::max(std::min(div_up(target, grid), div_up(values, least_values)), div_up(values, most_values));
  if (blocks <= 1) return {};
  const std::int64_t lanes = r.fastest ? 1 : width * r.output_vec;
  return {.partial = Bytes(checked_mul(checked_mul(element, r.outputs), checked_mul(blocks, lanes))),
          .semaphores = Bytes(checked_mul(4, grid))};
}

/// Reducing `dim` of t into a row-major result.
inline ReductionScratch reduction_scratch(const Tensor& t, int dim, std::int64_t element) {
  dim = wrap(dim, t.shape.rank());
  Reduction r{.inputs = t.shape[dim]};
  int first = -1;  // the innermost dimension of the result
  for (int i = 0; i < t.shape.rank(); ++i) {
    if (i == dim) continue;
    r.outputs = checked_mul(r.outputs, t.shape[i]);
    if (t.shape[i] != 1) first = i;
  }
  r.fastest = first < 0 || r.inputs == 1 || t.strides[dim] < t.strides[first];
  if (!r.fastest) {
    r.output_vec = 4;
    auto fits = [&](std::int64_t n) {
      while (n % r.output_vec != 0) r.output_vec /= 2;
    };
    fits(t.shape[first]);
    for (int i = 0; i < t.shape.rank(); ++i)
      if (i != first && t.shape[i] != 1) fits(t.strides[i]);
  }
  return reduction_scratch(r, element);
}

/// Reducing everything to one value.
constexpr ReductionScratch full_reduction_scratch(std::int64_t n, std::int64_t element) {
  return reduction_scratch(Reduction{.inputs = n}, element);
}

}  // namespace vlmest::eager
