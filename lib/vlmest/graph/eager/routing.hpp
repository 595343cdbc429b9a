// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/product.hpp>

/// What sends rows to experts and back: top-k, sort, histogram, gathers by integer index, the grouped product.
namespace vlmest::eager {

/// Values and their places.
struct Ranked {
  Value values;
  Value indices;  ///< int64
};

/// Scratch of torch.topk over fp32 rows of up to 1024 elements (aten/src/ATen/native/cuda/TensorTopK.cu): none where
/// one block selects from a row. Many long rows take the multi-block path: for each row the k-th value, a semaphore,
/// two generations of the rank and of the pattern looked for, 256 digit counts (16 bits) and their sums (32 bits), a
/// count of what is selected; and the scan of those counts (agrees with recorded peaks).
constexpr Bytes topk_workspace(std::int64_t rows, std::int64_t width) {
  const bool several_blocks = (rows > 4000 && width >= 400) || (rows >= 800 && width >= 800);
  if (!several_blocks) return Bytes{};
  return Bytes(checked_add(checked_mul(rows, 4 + 4 + 2 * 4 + 2 * 4 + 256 * (2 + 4) + 4), 1279));
}

/// torch.topk over the last dimension, sorted: one kernel selects, a second one orders the k results in place (the
/// multi-block path runs more of them).
inline Ranked topk(Value a, std::int64_t k) {
  Builder& b = a.builder();
  const std::int64_t width = a.size(-1), rows = width == 0 ? 0 : numel(a.shape()).value() / width;
  Shape s = a.shape();
  s[s.rank() - 1] = k;
  const DType t = a.dtype();
  const std::array<TensorId, 2> outs{b.result(t, s, "topk"), b.result(DType::int64, s, "topk_indices")};
  const std::array<TensorId, 1> ins{a.id()};
  const Bytes written = size_of(numel(s), t) + size_of(numel(s), DType::int64), scratch = topk_workspace(rows, width);
  b.emit("topk", MemoryOp{.read = data_bytes(a), .written = written, .workspace = scratch, .dtype = t, .kernels = 2},
         ins, outs, {scratch});
  Ranked r;
  r.values = Value(b, outs[0]);
  r.indices = Value(b, outs[1]);
  return r;
}

/// Scratch of torch.sort of one vector of n 8-byte elements (aten/src/ATen/native/cuda/Sort.cpp): up to 4096 elements
/// are sorted in place beside a copy of n * 8 bytes; more go through cub::DeviceRadixSort with 8-bit digits: the
/// unsorted positions, a second buffer of keys and of values, the digit counts of eight passes, one look-back table for
/// each tile of 4608 elements (12 of 8 bytes for each of 384 threads), pass counters. Parts of CUB's buffer start at
/// multiples of 256 bytes.
constexpr Bytes sort_workspace(std::int64_t n) {
  const std::int64_t plain = checked_mul(n, 8);
  if (n <= 4096) return Bytes(plain);
  constexpr std::int64_t digits = 256, passes = 8, tile = 4608;
  const std::int64_t counts = passes * digits * 8, lookback = checked_mul((n + tile - 1) / tile, digits * 4),
                     counters = 256;
  return Bytes(
      checked_add(plain, checked_add(255 + counts + counters + lookback, checked_mul(round_up(plain, 256), 2))));
}

/// torch.sort of an int64 vector. A radix sort runs over positions, histogram, prefix sums and eight passes.
inline Ranked sort(Value a) {
  Builder& b = a.builder();
  const std::int64_t n = a.size(0);
  const Shape s = a.shape();
  const std::array<TensorId, 2> outs{b.result(DType::int64, s, "sort"), b.result(DType::int64, s, "sort_indices")};
  const std::array<TensorId, 1> ins{a.id()};
  const Bytes one = data_bytes(a), scratch = sort_workspace(n);
  const bool radix = n > 4096;
  const std::int64_t passes = radix ? 8 : 1;
  b.emit("sort",
         MemoryOp{.read = one * 2 * passes,
                  .written = one * 2 * passes,
                  .workspace = scratch,
                  .dtype = DType::int64,
                  .kernels = radix ? 11 : 2},
         ins, outs, {scratch});
  Ranked r;
  r.values = Value(b, outs[0]);
  r.indices = Value(b, outs[1]);
  return r;
}

/// torch.histc of a vector into `bins` counts of its own type: zeros, then one kernel.
inline Value histc(Value a, std::int64_t bins) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = size_of(Elements(bins), t);
  const TensorId r = b.result(t, Shape{bins}, "histc");
  return emit1(b, "histc", MemoryOp{.read = data_bytes(a), .written = n * 2, .dtype = t, .kernels = 2}, r, {}, a);
}

/// self[index] along the first dimension.
inline Value take_rows(Value self, Value index) {
  Shape s = self.shape();
  s[0] = index.size(0);
  return gather_rows("index.Tensor", std::move(self), std::move(index), s);
}
/// self[index] = values along the first dimension.
inline Value put_rows(Value self, Value index, Value values) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes n = data_bytes(values), at = data_bytes(index);
  return emit_inplace(b, "index_put_", MemoryOp{.read = n + at, .written = n, .dtype = t}, {}, self, index, values);
}
/// torch.empty_like: memory without a kernel.
inline Value empty_like(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const TensorId r = b.result(t, a.shape(), "empty_like");
  return emit1(b, "empty_like", MemoryOp{.dtype = t, .kernels = 0}, r, {}, a);
}

/// The device facts that a grouped product depends on.
struct GroupedDevice {
  int sm = 90;
  int multiprocessors = 132;
};

/// torch.nn.functional.grouped_mm: a[rows, k] (sorted by group), b[groups, k, n], offsets int32[groups]. bf16 on
/// compute capability 9.0 and 10.x runs one CUTLASS kernel: pointers (an even number of groups), strides and sizes of
/// each group, and four tensor maps of 128 B for each multiprocessor (aten/src/ATen/native/cuda/GroupMM.cu; agrees with
/// recorded peaks). Otherwise the host reads the offsets and runs one product for each group.
inline Value grouped_mm(Value a, Value b, Value offsets, std::int64_t active, GroupedDevice device) {
  Builder& g = a.builder();
  const DType t = a.dtype();
  GroupedMatmul op{
      .rows = a.size(0), .n = b.size(2), .k = a.size(1), .groups = b.size(0), .active = active, .dtype = t};
  const bool one_kernel = t == DType::bf16 && (device.sm == 90 || device.sm / 10 == 10);
  Bytes arguments{}, tensor_maps{};
  if (one_kernel) {
    arguments = Bytes(checked_add(checked_mul(round_up(op.groups, 2), 3 * 8), checked_mul(op.groups, 3 * 8 + 3 * 4)));
    tensor_maps = Bytes(std::int64_t{4} * 128 * device.multiprocessors);
  }
  op.workspace = arguments + tensor_maps;
  op.kernels = one_kernel ? 2 : static_cast<int>(active);
  const TensorId r = g.result(t, Shape{op.rows, op.n}, "grouped_mm");
  return emit1(g, "_grouped_mm", op, r, {arguments, tensor_maps}, a, b, offsets);
}

}  // namespace vlmest::eager
