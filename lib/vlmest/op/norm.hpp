// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// One-kernel normalisation over the last dimension: aten native_layer_norm, or a fused RMSNorm. Reads the rows and
/// the affine parameters, writes rows of the same type (and, for layer norm, the fp32 mean and 1/sigma of each row).
struct Norm {
  enum class Kind : std::uint8_t { layer_norm, rms_norm } kind = Kind::layer_norm;
  std::int64_t rows = 1;
  std::int64_t width = 1;
  DType dtype = DType::bf16;
  int parameters = 2;   ///< affine vectors of `width`: 2 weight and bias, 1 weight, 0 none
  bool packed = false;  ///< the rows do not lie one after the other: a copy that does is made and normalised
  bool fused = false;   ///< by a kernel that keeps each row on the chip, as in kernels/, not the framework's
};

/// Statistics that the op returns beside its result: aten/src/ATen/native/cuda/layer_norm_kernel.cu allocates mean and
/// rstd in fp32 for 16-bit inputs. A fused RMSNorm keeps only the reciprocal root.
constexpr Bytes statistics(const Norm& o) {
  const DType acc = is_half(o.dtype) ? DType::fp32 : o.dtype;
  return size_of(Elements(o.rows), acc) * (o.kind == Norm::Kind::layer_norm ? 2 : 1);
}

constexpr Cost cost(const Norm& o) {
  const Bytes rows = size_of(Elements(checked_mul(o.rows, o.width)), o.dtype);
  const Bytes copy = o.packed ? rows : Bytes{};
  return {.read = rows + copy + size_of(Elements(o.width), o.dtype) * o.parameters,
          .written = rows + copy + statistics(o),
          .workspace = copy,
          .engine = Engine::cuda_core,
          .dtype = o.dtype,
          .kernels = o.packed ? 2 : 1};
}

}  // namespace vlmest
