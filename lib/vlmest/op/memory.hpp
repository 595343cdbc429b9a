// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// Any op whose time is the bytes it moves: element-wise arithmetic, casts, copies, concatenations, gathers, fills,
/// reductions, scans. `read` counts each operand at its own size, so a broadcast operand is cheap.
struct MemoryOp {
  Bytes read{};
  Bytes written{};
  Bytes workspace{};
  DType dtype = DType::bf16;
  int kernels = 1;
};

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
