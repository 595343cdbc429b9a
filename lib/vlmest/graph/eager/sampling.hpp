// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/reduce.hpp>
#include <vlmest/graph/eager/routing.hpp>

/// Ops that draw tokens from logits or judge them. None has a backward: they run without gradients.
namespace vlmest::eager {

/// torch.logsumexp over the last dimension, kept (aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl): the largest
/// values and exp(a - largest) are scratch while that is summed up; amax, abs, eq, masked_fill, sub, exp, sum, log and
/// add are kernels.
inline Value logsumexp(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s = reduced(a.shape(), -1, true);
  const TensorId r = b.result(t, s, "logsumexp");
  const Bytes largest = size_of(numel(s), t), whole = data_bytes(a);
  const ReductionScratch split = reduction_scratch(a.tensor(), -1, 4, b.gpu);
  const MemoryOp op{.read = whole * 4,
                    .written = whole * 2 + largest,
                    .workspace = largest + whole + split.partial + split.semaphores,
                    .dtype = t,
                    .kernels = 9,
                    .access = Access::reduction,
                    .elements = numel(a.shape())};
  return emit1(b, "logsumexp", op, r, {largest, whole, split.partial, split.semaphores}, a);
}

/// torch.argmax over the last dimension: partial results are a value and its place.
inline Value argmax(Value a) {
  const Shape s = reduced(a.shape(), -1, false);
  const ReductionScratch split = reduction_scratch(a.tensor(), -1, 16, a.builder().gpu);
  return reduce("argmax", DType::int64, s, std::move(a), {}, 1, split);
}

/// torch.multinomial(a, num_samples=1) of [rows, n] (aten/src/ATen/native/Distributions.cpp, multinomial_out, the path
/// of a single draw): whether the probabilities are sound is asked on the device, which leaves two booleans, then draws
/// as large as the probabilities are divided by (exponential, div), of which the largest is taken (argmax).
inline Value multinomial(Value a) {
  Builder& b = a.builder();
  const TensorId r = b.result(DType::int64, {a.size(0), 1}, "multinomial");
  const Bytes whole = data_bytes(a), sound(1);
  const ReductionScratch split = reduction_scratch(a.tensor(), -1, 16, b.gpu);
  const MemoryOp op{.read = whole * 6,
                    .written = whole * 2,
                    .workspace = whole + sound * 2 + split.partial + split.semaphores,
                    .dtype = a.dtype(),
                    .kernels = 13,
                    .access = Access::reduction,
                    .elements = numel(a.shape())};
  return emit1(b, "multinomial", op, r, {whole, sound, sound, split.partial, split.semaphores}, a);
}

/// torch.sort of rows of at most 4096 values, ascending, with their places (aten/src/ATen/native/cuda/Sort.cpp,
/// sortKeyValueInplace and fillSliceWithIndex): places are copied from those of one row, then both are sorted in place.
inline Ranked sort_rows(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s = a.shape();
  const std::array<TensorId, 2> outs{b.result(t, s, "sort"), b.result(DType::int64, s, "sort_indices")};
  const std::array<TensorId, 1> ins{a.id()};
  const Bytes one = data_bytes(a), places = size_of(numel(s), DType::int64),
              row = size_of(Elements(s[s.rank() - 1]), DType::int64);
  b.emit("sort",
         MemoryOp{.read = one * 2 + places + row,
                  .written = one * 2 + places * 2 + row,
                  .workspace = row,
                  .dtype = t,
                  .kernels = 3},
         ins, outs, {row});
  Ranked r;
  r.values = Value(b, outs[0]);
  r.indices = Value(b, outs[1]);
  return r;
}

/// torch.scatter of the last dimension: a copy of `a` with `source` at `index`.
inline Value scatter(Value a, Value index, Value source) {
  Builder& b = a.builder();
  const TensorId r = b.result(a.dtype(), a.shape(), "scatter");
  const MemoryOp op{.read = data_bytes(a) + data_bytes(index) + data_bytes(source),
                    .written = data_bytes(a) + data_bytes(source),
                    .dtype = a.dtype(),
                    .kernels = 2};
  return emit1(b, "scatter.src", op, r, {}, a, index, source);
}

}  // namespace vlmest::eager
