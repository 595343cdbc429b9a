// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/library/rules.hpp>

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

/// torch.topk over the last dimension: one kernel selects (the multi-block path runs more of them), and where the
/// results are to be sorted a second one orders them in place.
inline Ranked topk(Value a, std::int64_t k, bool sorted = true) {
  Builder& b = a.builder();
  const std::int64_t width = a.size(-1), rows = width == 0 ? 0 : numel(a.shape()).value() / width;
  Shape s = a.shape();
  s[s.rank() - 1] = k;
  const DType t = a.dtype();
  const std::array<TensorId, 2> outs{b.result(t, s, "topk"), b.result(DType::int64, s, "topk_indices")};
  const std::array<TensorId, 1> ins{a.id()};
  const Bytes written = size_of(numel(s), t) + size_of(numel(s), DType::int64), scratch = topk_workspace(rows, width);
  const MemoryOp op{
      .read = data_bytes(a), .written = written, .workspace = scratch, .dtype = t, .kernels = sorted ? 2 : 1};
  b.emit("topk", op, ins, outs, {scratch});
  Ranked r;
  r.values = Value(b, outs[0]);
  r.indices = Value(b, outs[1]);
  const GradEdge e = edge(a);
  differentiable(r.values, "TopkBackward0", {e},
                 [at = saved(r.indices, static_cast<bool>(e)), whole = e.shape](Gradients& g) {
                   g.out[0] = scatter_backward(g.in[0], at, whole);
                 });
  return r;
}

/// Scratch of torch.sort of one vector of n 8-byte elements (aten/src/ATen/native/cuda/Sort.cpp): up to 4096 elements
/// are sorted in place beside a copy of n * 8 bytes; more go through a radix sort with their unsorted positions.
constexpr Bytes sort_workspace(std::int64_t n) {
  const Bytes plain(checked_mul(n, 8));
  return n <= 4096 ? plain : plain + radix_sort_workspace(n);
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

/// self[:, index] of one row: self[1, n, width].
inline Value take_of_row(Value self, Value index) {
  Shape s = self.shape();
  s[1] = index.size(0);
  const GradEdge e = edge(self);
  const Value at = saved(index, static_cast<bool>(e));
  Value r = gather_rows("index.Tensor", std::move(self), std::move(index), s);
  differentiable(r, "IndexBackward0", {e}, [at, whole = e.shape](Gradients& g) {
    g.out[0] = index_backward(g.in[0], at, whole, at.size(0), Bytes{});
  });
  return r;
}
/// self[i, j] with integer indices over the first two dimensions, j broadcast to i; what j lacks is copied.
inline Value take_pairs(Value self, Value i, Value j) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  Shape s = i.shape();
  for (int d = 2; d < self.shape().rank(); ++d) s.push_back(self.size(d));
  const std::int64_t places = numel(i.shape()).value();
  const Bytes wide = data_bytes(i), expanded = numel(j.shape()) == numel(i.shape()) ? Bytes{} : wide;
  const Bytes moved = size_of(numel(s), t);
  const GradEdge e = edge(self);
  const Value at = saved(i, static_cast<bool>(e)), beside = saved(j, static_cast<bool>(e));
  const TensorId r = b.result(t, s, "index");
  const MemoryOp op{.read = wide * 2 + moved,
                    .written = moved + expanded,
                    .workspace = expanded,
                    .dtype = t,
                    .kernels = expanded > Bytes{} ? 2 : 1};
  Value out = emit1(b, "index.Tensor", op, r, {expanded}, self, i, j);
  differentiable(out, "IndexBackward0", {e}, [at, beside, whole = e.shape, places](Gradients& g) {
    g.out[0] = index_backward(g.in[0], at, whole, places, Bytes{});
  });
  return out;
}
/// self.index_put((i, j), values): a copy of self with values[n, width] at its rows i[n], j[n], int64 on the device.
/// Backward: zeros in the place of what was written over; what was written gets its part.
inline Value index_put(Value self, Value i, Value j, Value values) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const GradEdge es = edge(self), ev = edge(values);
  const Value row = saved(i, es || ev), col = saved(j, es || ev);
  const auto put = [](Builder& at, const Value& whole, const Value& x, const Value& y, const Value& part) {
    const Bytes moved = data_bytes(part), all = data_bytes(whole), places = data_bytes(x) * 2;
    const MemoryOp op{.read = all + moved + places, .written = all + moved, .dtype = whole.dtype(), .kernels = 2};
    const TensorId r = at.result(whole.dtype(), whole.shape(), whole.tensor().strides, "index_put");
    const std::array<TensorId, 4> ins{whole.id(), x.id(), y.id(), part.id()};
    at.emit("index_put", op, ins, std::array<TensorId, 1>{r});
    return Value(at, r);
  };
  Value out = put(b, self, i, j, values);
  for (Value* v : {&self, &i, &j, &values}) v->reset();
  differentiable(out, "IndexPutBackward0", {es, ev}, [row, col, put, t, part = ev.shape](Gradients& g) {
    Builder& at = row.builder();
    if (g.wants(0)) {
      const Value zeros = fill(at, "zeros", part, t);
      g.out[0] = put(at, g.in[0], row, col, zeros);
    }
    if (g.wants(1)) g.out[1] = take_pairs(g.in[0], row, col);
  });
  return out;
}

/// self.scatter_(dim, places, number). Backward: zeros in those places of a copy of the gradient.
inline Value mark_places(Value self, Value places) {
  const MemoryOp op{.read = data_bytes(places), .written = data_bytes(places), .dtype = self.dtype()};
  Builder& b = self.builder();
  const GradEdge e = edge(self);
  const Value at = saved(places, static_cast<bool>(e));
  Value r = emit_inplace(b, "scatter_.value", op, {}, self, places);
  differentiable(r, "ScatterBackward1", {e}, [at](Gradients& g) { g.out[0] = mark_places(clone(g.in[0]), at); });
  return r;
}

/// self[index] = values along the first dimension.
inline Value put_rows(Value self, Value index, Value values) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes n = data_bytes(values), at = data_bytes(index);
  return emit_inplace(b, "index_put_", MemoryOp{.read = n + at, .written = n, .dtype = t}, {}, self, index, values);
}
/// self.index_add_(0, index, source) over rows. Backward: the rows of the gradient, for which the source is kept too
/// (tools/autograd/derivatives.yaml, index_add: it asks for its dimensions).
inline Value index_add_(Value self, Value index, Value source) {
  Builder& b = self.builder();
  const Bytes n = data_bytes(source);
  const GradEdge es = edge(self), ev = edge(source);
  const bool trains = static_cast<bool>(ev);
  const Value at = saved(index, trains), unread = saved(source, trains);
  const MemoryOp op{.read = n * 2 + data_bytes(index), .written = n, .dtype = self.dtype()};
  Value r = emit_inplace(b, "index_add_", op, {}, self, index, source);
  differentiable(r, "IndexAddBackward0", {es, ev}, [at, unread](Gradients& g) {
    if (g.wants(1)) g.out[1] = index_select(g.in[0], 0, at);
    if (g.wants(0)) g.out[0] = g.in[0];
  });
  return r;
}
/// torch.nn.functional.grouped_mm: a[rows, k] (sorted by group), b[groups, k, n], offsets int32[groups]; or a[k, rows],
/// b[rows, n] to a product for each group, [groups, k, n]. Where bf16 runs as one CUTLASS kernel, that takes pointers
/// (an even number of groups), strides and sizes of each group, and four tensor maps of 128 B for each multiprocessor
/// (aten/src/ATen/native/cuda/GroupMM.cu; agrees with recorded peaks). Otherwise the host reads the offsets and runs
/// one product for each group. Where `ranks` divide the groups, rows of the others lie behind these and are left out.
inline Value grouped_mm(Value a, Value b, Value offsets, std::int64_t active, int ranks = 1) {
  Builder& g = a.builder();
  const DType t = a.dtype();
  GroupedMatmul op{
      .rows = a.size(0), .n = b.size(-1), .k = a.size(1), .groups = offsets.size(0), .active = active, .dtype = t};
  if (b.shape().rank() == 2) {
    op.per_group = true;
    std::swap(op.rows, op.k);
  }
  const bool one_kernel = t == DType::bf16 && holds(ArchitectureRule::grouped_product, g.gpu);
  Bytes arguments{}, tensor_maps{};
  if (one_kernel) {
    arguments = Bytes(checked_add(checked_mul(round_up(op.groups, 2), 3 * 8), checked_mul(op.groups, 3 * 8 + 3 * 4)));
    tensor_maps = Bytes(std::int64_t{4} * 128 * g.gpu.multiprocessors);
  }
  op.workspace = arguments + tensor_maps;
  op.kernels = one_kernel ? 2 : static_cast<int>(active);
  const TensorId r = g.result(t, op.per_group ? Shape{op.groups, op.k, op.n} : Shape{op.rows, op.n}, "grouped_mm");
  op.rows /= ranks;
  const GradEdge ea = edge(a), eb = edge(b);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, static_cast<bool>(ea)), so = saved(offsets, ea || eb);
  Value out = emit1(g, product("_grouped_mm"), op, r, {arguments, tensor_maps}, a, b, offsets);
  // _grouped_mm_mat2_backward, _grouped_mm_mat1_backward: as those of mm, for each group.
  differentiable(out, "GroupedMmBackward0", {ea, eb}, [sa, sb, so, active, ranks](Gradients& d) {
    const bool columns = sb && sb.tensor().strides[1] == 1;
    if (d.wants(1)) {
      d.out[1] = columns || !sb ? transpose(grouped_mm(transpose(d.in[0], 0, 1), sa, so, active, ranks), 1, 2)
                                : grouped_mm(transpose(sa, 0, 1), d.in[0], so, active, ranks);
    }
    if (d.wants(0)) d.out[0] = grouped_mm(d.in[0], transpose(sb, 1, 2), so, active, ranks);
  });
  return out;
}

}  // namespace vlmest::eager
