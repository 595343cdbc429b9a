// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/graph/eager/selection.hpp>

/// Counting and sorting into buckets, and windows over a dimension.
namespace vlmest::eager {

/// torch.bucketize(input, boundaries): int64; an input of another type than the boundaries' is cast first
/// (aten/src/ATen/native/BucketizationUtils.h, searchsorted_maybe_trim_input_tensors).
inline Value bucketize(Value input, Value boundaries) {
  Builder& b = input.builder();
  const bool cast = input.dtype() != boundaries.dtype();
  const Bytes copy = cast ? size_of(numel(input.shape()), promote(input.dtype(), boundaries.dtype())) : Bytes{};
  const Bytes written = size_of(numel(input.shape()), DType::int64);
  const TensorId r = b.result(DType::int64, input.shape(), "bucketize");
  const MemoryOp op{.read = data_bytes(input) + data_bytes(boundaries) + copy,
                    .written = written + copy,
                    .workspace = copy,
                    .dtype = DType::int64,
                    .kernels = cast ? 2 : 1};
  return emit1(b, "bucketize.Tensor", op, r, {copy}, input, boundaries);
}

/// sum over the last `dims` dimensions of booleans: cast to int64, then reduced, by several blocks to an output where
/// there are few of them.
inline Value count_true(Value mask, int dims) {
  Shape s;
  Reduction rows;
  const int kept = mask.shape().rank() - dims;
  for (int i = 0; i < kept; ++i) s.push_back(mask.size(i));
  for (int i = kept; i < mask.shape().rank(); ++i) rows.inputs = checked_mul(rows.inputs, mask.size(i));
  rows.outputs = numel(s).value();
  const Bytes cast = size_of(numel(mask.shape()), DType::int64);
  const ReductionScratch split = reduction_scratch(rows, 8, mask.builder().gpu);
  return reduce("sum.dim_IntList", DType::int64, s, std::move(mask), cast, 2, split);
}

/// tensor.unfold(dim, size, step): windows along `dim` as a new last dimension. Backward: each window's gradient is
/// added to where it was taken from, the places that windows cover in a list (aten/src/ATen/native/cuda/
/// UnfoldBackwardKernel.cu).
inline Value unfold(Value v, int dim, std::int64_t size, std::int64_t step) {
  Shape s = v.shape(), t = v.tensor().strides;
  dim = wrap(dim, s.rank());
  if (size > s[dim]) throw Error("graph", "unfold of " + std::to_string(size) + " over " + std::to_string(s[dim]));
  s.push_back(size);
  t.push_back(t[dim]);
  s[dim] = (s[dim] - size) / step + 1;
  t[dim] *= step;
  const GradEdge e = edge(v);
  Value r = v.builder().view(v, s, t);
  v.reset();
  const Bytes places = size_of(Elements((s[dim] - 1) * step + size), DType::int64);
  differentiable(r, "UnfoldBackward0", {e}, [whole = e.shape, places](Gradients& g) {
    Builder& at = g.in[0].builder();
    const DType type = g.in[0].dtype();
    const MemoryOp op{.read = data_bytes(g.in[0]),
                      .written = size_of(numel(whole), type),
                      .workspace = places,
                      .dtype = type,
                      .kernels = 3};
    g.out[0] = emit1(at, "unfold_backward", op, at.result(type, whole, "unfold_backward"), {places}, g.in[0]);
  });
  return r;
}

}  // namespace vlmest::eager
