// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/graph/eager/data.hpp>

/// Selection whose size the host has to learn, and indices that stand on the host.
namespace vlmest::eager {

/// tolist(), cpu(): a copy to the host, which waits; a tensor with gaps is first packed on the device.
inline void to_host(Value a) {
  Builder& b = a.builder();
  const Bytes n = data_bytes(a), packed = is_contiguous(a) ? Bytes{} : n;
  const std::array<TensorId, 1> in{a.id()};
  if (packed > Bytes{})
    b.emit("_to_copy", MemoryOp{.read = n, .written = n, .workspace = packed, .dtype = a.dtype()}, in, {}, {packed});
  else
    b.emit("_to_copy", HostSync{n}, in, {});
}

/// What torch.nonzero takes besides its result, an int32 count and CUB temporaries
/// (aten/src/ATen/native/cuda/Nonzero.cu, nonzero_cuda_out_impl). Counting comes before the result is allocated: where
/// one block of 4096 elements does not do, an int32 partial sum for each of five waves of blocks of 256 threads
/// (cub/device/dispatch/dispatch_reduce.cuh, subscription factor; tuning_reduce.cuh, from sm_60 on). Selecting comes
/// after: two words for each tile of 4224 elements and 32 of padding, and the streaming state. Recorded from 1 to
/// 5,000,000 elements on sm_90.
constexpr Bytes nonzero_counting(std::int64_t n, const Gpu& device) {
  return n <= 4096 ? Bytes(4) : Bytes(4 + 255 + round_up(device.blocks(256) * 5 * 4, 256));
}
constexpr Bytes nonzero_selecting(std::int64_t n) {
  const std::int64_t tiles = (n + 4223) / 4224;
  return Bytes(4 + 255 + 256 + round_up((tiles + 32) * 8, 256));
}
/// By how much finding the positions (`found` bytes) in a mask of n elements exceeds what an op holds when it has found
/// them and made its result of `moved` bytes; `copied`: of a mask with gaps, for as long as it is searched.
constexpr Bytes nonzero_excess(std::int64_t n, Bytes found, Bytes moved, const Gpu& device, Bytes copied = {}) {
  const Bytes selecting = found + nonzero_selecting(n) + copied, counting = nonzero_counting(n, device) + copied;
  const Bytes most = selecting > counting ? selecting : counting;
  return most > found + moved ? most - found - moved : Bytes{};
}
/// Count (two steps where one block does not do), two of the selection, and one that takes flat positions apart where
/// there are several dimensions; a mask with gaps is copied first.
inline int nonzero_kernels(const Value& mask) {
  return (numel(mask.shape()).value() > 4096 ? 4 : 3) + (mask.shape().rank() > 1 ? 1 : 0) +
         (is_contiguous(mask) ? 0 : 1);
}

/// self[mask] with a boolean mask over the leading dimensions of self, of which `selected` are true: the mask becomes
/// int64 coordinates, one column per dimension of the mask (IndexingUtils.h, expandTensors), then rows are gathered.
inline Value masked_index(Value self, Value mask, std::int64_t selected) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const int dims = mask.shape().rank();
  Shape s{selected};
  for (int i = dims; i < self.shape().rank(); ++i) s.push_back(self.size(i));
  const std::int64_t n = numel(mask.shape()).value();
  const Bytes found = size_of(Elements(checked_mul(selected, dims)), DType::int64), moved = size_of(numel(s), t);
  const Bytes copied = is_contiguous(mask) ? Bytes{} : data_bytes(mask);
  const Bytes search = nonzero_excess(n, found, moved, b.gpu, copied), passes = std::min(search, nonzero_selecting(n));
  const TensorId r = b.result(t, s, "index");
  const MemoryOp op{.read = data_bytes(mask) * 2 + found + moved,
                    .written = found + moved,
                    .workspace = found + search,
                    .dtype = t,
                    .kernels = nonzero_kernels(mask) + 1};
  const GradEdge e = edge(self);
  const Value at = saved(mask, static_cast<bool>(e));
  Value out = emit1(b, "index.Tensor", op, r, {found, search - passes, passes}, self, mask);
  // One place of two factors, and the sum of those before, where the mask has several dimensions.
  const Bytes linear = found + size_of(Elements(selected), DType::int64) * (dims > 1 ? 3 : 2);
  const Bytes making = std::max(linear, found + nonzero_selecting(n));
  differentiable(out, "IndexBackward0", {e}, [at, whole = e.shape, selected, making](Gradients& g) {
    g.out[0] = index_backward(g.in[0], at, whole, selected, making);
  });
  return out;
}

/// torch.nonzero(mask): int64[selected, dimensions].
inline Value nonzero(Value mask, std::int64_t selected) {
  Builder& b = mask.builder();
  const int dims = mask.shape().rank();
  const Shape s{selected, dims};
  const Bytes found = size_of(numel(s), DType::int64), copied = is_contiguous(mask) ? Bytes{} : data_bytes(mask);
  const Bytes search = nonzero_excess(numel(mask.shape()).value(), found, Bytes{}, b.gpu, copied);
  const MemoryOp op{.read = data_bytes(mask) * 2,
                    .written = found,
                    .workspace = search,
                    .dtype = DType::int64,
                    .kernels = nonzero_kernels(mask)};
  const Bytes gaps = std::min(copied, search);
  return emit1(b, "nonzero", op, b.result(DType::int64, s, "nonzero"), {gaps, search - gaps}, mask);
}

/// self[index] along the first dimension, for an int64 index on the device, of any shape.
inline Value take_rows(Value self, Value index) {
  Shape s = index.shape();
  for (int d = 1; d < self.shape().rank(); ++d) s.push_back(self.size(d));
  const GradEdge e = edge(self);
  const Value at = saved(index, static_cast<bool>(e));
  Value r = gather_rows("index.Tensor", std::move(self), std::move(index), s);
  differentiable(r, "IndexBackward0", {e}, [at, whole = e.shape](Gradients& g) {
    g.out[0] = index_backward(g.in[0], at, whole, numel(at.shape()).value(), Bytes{});
  });
  return r;
}

/// self.index_copy_(0, index, source) into a tensor without a history. Backward: the rows of the gradient, for which
/// the source is kept too (tools/autograd/derivatives.yaml, index_copy: it asks for its dimensions).
inline Value index_copy_(Value self, Value index, Value source) {
  Builder& b = self.builder();
  const Bytes n = data_bytes(source);
  const GradEdge e = edge(source);
  const Value at = saved(index, static_cast<bool>(e)), unread = saved(source, static_cast<bool>(e));
  const MemoryOp op{.read = n + data_bytes(index), .written = n, .dtype = self.dtype()};
  Value r = emit_inplace(b, "index_copy_", op, {}, self, index, source);
  differentiable(r, "IndexCopyBackward0", {e}, [at, unread](Gradients& g) { g.out[0] = index_select(g.in[0], 0, at); });
  return r;
}

/// What self[..., mask] = values takes, of `selected` rows.
struct MaskedPut {
  MemoryOp op;
  std::array<Bytes, 3> scratch;
  std::int64_t selected = 0;
};
inline MaskedPut masked_put(const Value& mask, const Value& values, std::int64_t selected) {
  const std::int64_t n = numel(mask.shape()).value();
  const Bytes found = size_of(Elements(checked_mul(selected, mask.shape().rank())), DType::int64),
              moved = data_bytes(values), mask_copy = is_contiguous(mask) ? Bytes{} : data_bytes(mask);
  const Bytes search = nonzero_excess(n, found, Bytes{}, mask.builder().gpu, mask_copy),
              passes = std::min(search, nonzero_selecting(n));
  return {.op = {.read = data_bytes(mask) * 2 + found + moved,
                 .written = found + moved,
                 .workspace = found + search,
                 .dtype = values.dtype(),
                 .kernels = nonzero_kernels(mask) + 1},
          .scratch = {found, search - passes, passes},
          .selected = selected};
}
/// Its gradient for what was written over: zeros stand in the place of the values.
inline Value masked_put_backward(const Value& gradient, const Value& mask, const MaskedPut& put, const Shape& values) {
  Builder& to = mask.builder();
  const DType t = gradient.dtype();
  Value zeros = fill(to, "zeros", values, t);
  MemoryOp copied = put.op;
  copied.read += data_bytes(gradient);
  copied.written += data_bytes(gradient);
  const TensorId r = to.result(t, gradient.shape(), gradient.tensor().strides, "index_put");
  const std::array<TensorId, 3> ins{gradient.id(), mask.id(), zeros.id()};
  const std::array<TensorId, 1> outs{r};
  to.emit("index_put", copied, ins, outs, {put.scratch[0], put.scratch[1], put.scratch[2]});
  return Value(to, r);
}
/// self[..., mask] = values, in place.
inline Value masked_index_put_(Value self, Value mask, Value values, std::int64_t selected) {
  Builder& b = self.builder();
  const MaskedPut put = masked_put(mask, values, selected);
  const GradEdge es = edge(self), ev = edge(values);
  const Value at = saved(mask, es || ev);
  const Shape part = values.shape();
  Value out =
      emit_inplace(b, "index_put_", put.op, {put.scratch[0], put.scratch[1], put.scratch[2]}, self, mask, values);
  // What was written gets its part.
  differentiable(out, "IndexPutBackward0", {es, ev}, [at, put, part](Gradients& g) {
    if (g.wants(0)) g.out[0] = masked_put_backward(g.in[0], at, put, part);
    if (g.wants(1)) g.out[1] = masked_index(g.in[0], at, put.selected);
  });
  return out;
}

/// self[index] along the first dimension with an int64 index of this shape on the host: it is copied over first.
inline Value host_index(Value self, Shape index) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const std::int64_t rows = numel(index).value();
  Shape s = index;
  for (int i = 1; i < self.shape().rank(); ++i) s.push_back(self.size(i));
  const Bytes moved = size_of(numel(s), t), copied = size_of(Elements(rows), DType::int64);
  const TensorId r = b.result(t, s, "index");
  const MemoryOp op{.read = moved + copied, .written = moved, .workspace = copied, .dtype = t};
  const GradEdge e = edge(self);
  Value out = emit1(b, "index.Tensor", op, r, {copied}, self);
  differentiable(out, "IndexBackward0", {e}, [whole = e.shape, rows](Gradients& g) {
    g.out[0] = index_backward(g.in[0], {}, whole, rows, Bytes{});
  });
  return out;
}

/// self[:, :, index] = values in place, [B, H, S, D]; without an index on the device it is a list of the host, which is
/// copied over first.
inline void put_at(Value self, Value index, Value values) {
  Builder& b = self.builder();
  const Bytes moved = data_bytes(values), list = size_of(Elements(values.size(2)), DType::int64);
  const MemoryOp op{.read = moved + list, .written = moved, .workspace = index ? Bytes{} : list, .dtype = self.dtype()};
  if (index)
    emit_inplace(b, "index_put_", op, {}, self, index, values);
  else
    emit_inplace(b, "index_put_", op, {list}, self, values);
}

/// torch.repeat_interleave(repeats): for each entry its own index, `total` of them. The counts are packed, summed up
/// (packed again by the scan, which gets the original), checked to be no less than zero, and expanded
/// (aten/src/ATen/native/Repeat.h and cuda/Repeat.cu).
inline Value repeat_interleave_index(Value repeats, std::int64_t total) {
  Builder& b = repeats.builder();
  const std::int64_t n = numel(repeats.shape()).value();
  const Bytes entries = data_bytes(repeats), packed = is_contiguous(repeats) ? Bytes{} : entries;
  const Bytes out = size_of(Elements(total), DType::int64), scan = packed + scan_workspace(n, 8);
  // The scan is over when the result is allocated.
  const Bytes excess = scan > out ? scan - out : Bytes{};
  const TensorId r = b.result(DType::int64, {total}, "repeat_interleave");
  const MemoryOp op{.read = entries * 2,
                    .written = entries + out,
                    .workspace = packed + entries + excess,
                    .dtype = DType::int64,
                    .kernels = 4 + (packed > Bytes{} ? 2 : 0) + (n > 1 ? 1 : 0)};
  return emit1(b, "repeat_interleave.Tensor", op, r, {packed, entries, excess}, repeats);
}

/// torch.nn.functional.pad of a vector with a constant: a filled tensor and a copy into it.
inline Value constant_pad(Value a, std::int64_t length) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = size_of(Elements(length), t);
  const TensorId r = b.result(t, {length}, "constant_pad_nd");
  return emit1(b, "constant_pad_nd", MemoryOp{.read = data_bytes(a), .written = n + data_bytes(a), .dtype = t}, r, {},
               a);
}

/// torch.unique_consecutive of a vector of which `distinct` entries remain: the result keeps the storage of the full
/// length (aten/src/ATen/native/cuda/UniqueCub.cu, Unique.cu: the output is resized after the host has read its
/// length).
inline Value unique_consecutive(Value a, std::int64_t distinct) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const std::int64_t n = a.size(0);
  const TensorId r = b.result(t, {distinct}, "unique_consecutive");
  b.graph.tensors[static_cast<std::size_t>(r)].storage = Elements(n);
  const std::array<TensorId, 3> outs{r, b.result(DType::int64, {0}, "inverse"), b.result(DType::int64, {0}, "counts")};
  const std::array<TensorId, 1> ins{a.id()};
  const Bytes length(8), scan = scan_workspace(n, 4);
  b.emit(
      "unique_consecutive",
      MemoryOp{.read = data_bytes(a), .written = data_bytes(a), .workspace = length + scan, .dtype = t, .kernels = 2},
      ins, outs, {length, scan});
  Value kept(b, r);
  Value inverse(b, outs[1]), counts(b, outs[2]);
  a.reset();
  return kept;
}

/// Integer quotient by a Python number.
inline Value floor_divide(Value a) { return unary("floor_divide", std::move(a)); }

/// self.gather(-1, index); not differentiable: masks are picked so.
inline Value gather_last(Value self, Value index) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes moved = size_of(numel(index.shape()), t);
  const MemoryOp op{.read = moved + data_bytes(index), .written = moved, .dtype = t};
  return emit1(b, "gather", op, b.result(t, index.shape(), "gather"), {}, self, index);
}

}  // namespace vlmest::eager
