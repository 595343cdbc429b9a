// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/op/cost.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// How a kernel walks through its tensors, which decides how much of the bandwidth it reaches. PyTorch has one kernel
/// for each (aten/src/ATen/native/cuda/CUDALoops.cuh, gpu_kernel_impl; Shape.cu; Reduce.cuh).
enum class Access : std::uint8_t {
  contiguous,     ///< all operands of one type and one dense layout: vector loads and stores
  functions,      ///< the same with functions that take longer than the loads: erf, tanh, powers
  cast,           ///< one dense layout, but types that are converted element by element
  strided,        ///< broadcast or permuted operands: every thread computes the offset of each of its elements
  transposed,     ///< strided, and neighbours in the result are no neighbours in an operand
  concatenation,  ///< several tensors into one
  gather,         ///< rows picked by an index
  reduction,      ///< many elements into few
  rows,           ///< a reduction over each row and its elements again: norms, softmax
  fused,          ///< of one kernel written for the op, as in kernels/: wide loads and stores and nothing else
  rotation,       ///< such a kernel that turns pairs of channels by angles of a table
  packaged,       ///< of one kernel that a package beside torch brings for the op: Triton's, or its own
};
template <>
inline constexpr std::array<std::string_view, 12> words_of<Access>{
    "contiguous", "functions", "cast", "strided", "transposed", "concatenation",
    "gather",     "reduction", "rows", "fused",   "rotation",   "packaged"};

/// Any op whose time is the bytes it moves: element-wise arithmetic, casts, copies, concatenations, gathers, fills,
/// reductions, scans. `read` counts each operand at its own size, so a broadcast operand is cheap.
struct MemoryOp {
  Bytes read{};
  Bytes written{};
  Bytes workspace{};
  DType dtype = DType::bf16;
  int kernels = 1;
  Access access = Access::contiguous;
  Elements elements{};         ///< that the threads share; none: those of the larger side
  std::int64_t dependent = 0;  ///< loads that each thread makes one after the other
};

/// How many elements of a type lie in that many bytes.
constexpr Elements elements_in(Bytes bytes, DType t) {
  const std::int64_t whole = bytes.value() / bits(t), rest = bytes.value() % bits(t);
  return Elements(checked_add(checked_mul(whole, 8), rest * 8 / bits(t)));
}

/// Elements that the threads go through.
constexpr Elements walked(const MemoryOp& o) {
  return o.elements > Elements{} ? o.elements : elements_in(std::max(o.read, o.written), o.dtype);
}

constexpr Cost cost(const MemoryOp& o) {
  return {.read = o.read, .written = o.written, .workspace = o.workspace, .dtype = o.dtype, .kernels = o.kernels};
}

/// A result that the host waits for (item(), .tolist(), boolean masks): one copy from device to host, no kernel.
struct HostSync {
  Bytes bytes{};
};

constexpr Cost cost(const HostSync& o) { return {.read = o.bytes, .kernels = 0}; }

/// A new shape on old storage: transpose, slice, expand. Costs nothing; it is recorded where autograd needs it.
struct View {};

constexpr Cost cost(const View&) { return {.kernels = 0}; }

}  // namespace vlmest
