// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/emit.hpp>

/// Resizing of feature maps.
namespace vlmest::eager {

/// torch.nn.functional.interpolate(x, size, mode="bilinear") of x[N, C, H, W]: one kernel that reads any strides; the
/// result is row-major (aten/src/ATen/native/cuda/UpSampleBilinear2d.cu).
inline Value upsample_bilinear2d(Value x, std::int64_t rows, std::int64_t cols) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const TensorId r = b.result(t, s, "upsample_bilinear2d");
  return emit1(b, "upsample_bilinear2d", MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t},
               r, {}, x);
}

/// The same with mode="bicubic" (aten/src/ATen/native/cuda/UpSampleBicubic2d.cu).
inline Value upsample_bicubic2d(Value x, std::int64_t rows, std::int64_t cols) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), rows, cols};
  const TensorId r = b.result(t, s, "upsample_bicubic2d");
  return emit1(b, "upsample_bicubic2d", MemoryOp{.read = data_bytes(x), .written = size_of(numel(s), t), .dtype = t}, r, {}, x);
}

/// torch.nn.functional.grid_sample of x[N, C, H, W] at at[N, R, S, 2]: one kernel that reads any strides; the result
/// [N, C, R, S] is row-major (aten/src/ATen/native/cuda/GridSampler.cu).
inline Value grid_sampler_2d(Value x, Value at) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Shape s{x.size(0), x.size(1), at.size(1), at.size(2)};
  const TensorId r = b.result(t, s, "grid_sampler_2d");
  const MemoryOp op{.read = data_bytes(x) + data_bytes(at), .written = size_of(numel(s), t), .dtype = t};
  return emit1(b, "grid_sampler_2d", op, r, {}, x, at);
}

}  // namespace vlmest::eager
