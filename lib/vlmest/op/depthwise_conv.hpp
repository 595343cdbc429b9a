// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/memory.hpp>

namespace vlmest {

/// A convolution of every channel by itself: x[batch, channels, in_length] with `taps` weights for each channel. Bytes
/// are what takes its time: a multiply-add for each tap.
struct DepthwiseConv {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t in_length = 1;
  std::int64_t out_length = 1;
  std::int64_t taps = 1;
  DType dtype = DType::bf16;
  Bytes packed{};  ///< a row-major copy of the signal, where it is not
};

constexpr Bytes signal_bytes(const DepthwiseConv& o, std::int64_t length) {
  return size_of(Elements(checked_mul(checked_mul(o.batch, o.channels), length)), o.dtype);
}
constexpr Bytes weight_bytes(const DepthwiseConv& o) {
  return size_of(Elements(checked_mul(o.channels, o.taps)), o.dtype);
}

constexpr MemoryOp memory_op(const DepthwiseConv& o) {
  return {.read = signal_bytes(o, o.in_length) + o.packed + weight_bytes(o),
          .written = signal_bytes(o, o.out_length) + o.packed,
          .workspace = o.packed,
          .dtype = o.dtype,
          .kernels = o.packed > Bytes{} ? 2 : 1,
          .access = Access::strided};
}

/// Its backward: one kernel for each gradient that is wanted, and those that pack signal and gradient (`copied`).
constexpr MemoryOp backward_op(const DepthwiseConv& o, std::size_t wanted, Bytes copied) {
  const Bytes in = signal_bytes(o, o.in_length), out = signal_bytes(o, o.out_length);
  return {.read = (out + in) * static_cast<std::int64_t>(wanted) + o.packed + copied,
          .written = in + weight_bytes(o) + o.packed + copied,
          .workspace = o.packed + copied,
          .dtype = o.dtype,
          .kernels = static_cast<int>(wanted) + (o.packed > Bytes{} ? 1 : 0) + (copied > Bytes{} ? 1 : 0),
          .access = Access::strided};
}

}  // namespace vlmest
