// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/graph/eager/concatenation.hpp>
#include <vlmest/graph/eager/reduce.hpp>
#include <vlmest/op/gather.hpp>

/// Data movement: gathers, scatters, fills, padding.
namespace vlmest::eager {

// What derivatives call: gradient.hpp defines them.
Value embedding_dense_backward(Value gradient, Value rows, const Shape& table);
Value masked_fill(Value a, Value mask);
Value index_select_backward(Value gradient, Value at, const Shape& whole);
Value index_backward(Value gradient, Value at, const Shape& whole, std::int64_t entries, Bytes found);
Value masked_scatter_backward(Value gradient, Value mask, const Shape& source);

/// Entries of a table by index: embedding, index_select.
inline Value gather_rows(const char* name, Value table, Value index, Shape out) {
  Builder& b = table.builder();
  const DType t = table.dtype();
  const std::int64_t rows = numel(index.shape()).value();
  const Gather op{.rows = rows,
                  .width = rows == 0 ? 0 : numel(out).value() / rows,
                  .table_rows = table.size(0),
                  .dtype = t,
                  .index = index.dtype()};
  const TensorId r = b.result(t, out, name);
  return emit1(b, name, memory_op(op), r, {}, table, index);
}
inline Value embedding(Value table, Value index) {
  Shape s = index.shape();
  s.push_back(table.size(1));
  const GradEdge e = edge(table);
  const Value rows = saved(index, static_cast<bool>(e));
  Value r = gather_rows("embedding", std::move(table), std::move(index), s);
  differentiable(r, "EmbeddingBackward0", {e},
                 [rows, table = e.shape](Gradients& g) { g.out[0] = embedding_dense_backward(g.in[0], rows, table); });
  return r;
}
/// torch.index_select.
inline Value index_select(Value a, int dim, Value index) {
  Shape s = a.shape();
  s[wrap(dim, s.rank())] = index.size(0);
  const GradEdge e = edge(a);
  const Value at = saved(index, static_cast<bool>(e));
  Value r = gather_rows("index_select", std::move(a), std::move(index), s);
  differentiable(r, "IndexSelectBackward0", {e},
                 [at, whole = e.shape](Gradients& g) { g.out[0] = index_select_backward(g.in[0], at, whole); });
  return r;
}

/// self[indices...] with one integer index per leading dimension, broadcast against each other to `out`: an index of
/// fewer elements than that is first expanded to a copy (aten/src/ATen/native/TensorAdvancedIndexing.cpp, make_info).
inline Value index(Value self, Value i, Value j, const Shape& out) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes full = size_of(numel(out), DType::int64);
  const auto expanded = [&](const Value& v) { return numel(v.shape()) == numel(out) ? Bytes{} : full; };
  const Bytes ci = expanded(i), cj = expanded(j);
  const TensorId r = b.result(t, out, "index");
  const MemoryOp op{.read = full * 2 + size_of(numel(out), t),
                    .written = size_of(numel(out), t) + ci + cj,
                    .workspace = ci + cj,
                    .dtype = t,
                    .kernels = 1 + (ci > Bytes{}) + (cj > Bytes{})};
  return emit1(b, "index.Tensor", op, r, {ci, cj}, self, i, j);
}

/// torch.tensor(x, device=cuda): a copy from the host, as is x.to(cuda), "_to_copy".
inline Value from_host(Builder& b, const Shape& s, DType t, const char* name = "lift_fresh") {
  const TensorId r = b.result(t, s, "tensor");
  const std::array<TensorId, 1> outs{r};
  b.emit(name, HostSync{size_of(numel(s), t)}, {}, outs);
  return Value(b, r);
}

/// A fresh tensor filled by a kernel: "arange", "zeros", "full", "ones", "new_ones", …
inline Value fill(Builder& b, const char* name, const Shape& s, DType t) {
  const Bytes n = size_of(numel(s), t);
  const TensorId r = b.result(t, s, name);
  const std::array<TensorId, 1> outs{r};
  b.emit(name, MemoryOp{.written = n, .dtype = t}, {}, outs);
  return Value(b, r);
}
/// The same without a kernel: "empty", "new_empty_strided".
inline Value empty(Builder& b, const char* name, const Shape& s, DType t) {
  const TensorId r = b.result(t, s, name);
  const std::array<TensorId, 1> outs{r};
  b.emit(name, MemoryOp{.dtype = t, .kernels = 0}, {}, outs);
  return Value(b, r);
}
/// self.fill_ by a number: an assignment to a slice.
inline Value fill_(Value self) {
  Builder& b = self.builder();
  const MemoryOp op{.written = data_bytes(self), .dtype = self.dtype()};
  return emit_inplace(b, "fill_.Tensor", op, {}, self);
}
inline Value arange(Builder& b, std::int64_t n) { return fill(b, "arange", Shape{n}, DType::int64); }

/// self.masked_scatter(mask, source) with a mask of one column that broadcasts over the rows: the mask is expanded to
/// a full copy and its prefix sum (int64) is taken with CUB (aten/src/ATen/native/cuda/IndexKernel.cpp,
/// masked_scatter_cuda; a copy of self is made first because the call is not in place). When that is done, a source
/// with gaps is made row-major (IndexKernel.cu, launch_masked_scatter_kernel).
inline Value masked_scatter(Value self, Value mask, Value source) {
  const std::int64_t n = numel(self.shape()).value();
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes size = data_bytes(self), expanded = Bytes(n), sums = size_of(Elements(n), DType::int64);
  const Bytes packed = is_contiguous(source) ? Bytes{} : data_bytes(source), scan = scan_workspace(n, 8);
  const Bytes later = std::max(scan, packed);  // the scan is over when the source is packed
  const TensorId r = b.result(t, self.shape(), self.tensor().strides, "masked_scatter");
  const MemoryOp op{.read = size * 2 + data_bytes(source) + packed + expanded * 2 + sums,
                    .written = size * 2 + packed + expanded + sums,
                    .workspace = expanded + sums + later,
                    .dtype = t,
                    .kernels = packed > Bytes{} ? 6 : 5};
  const GradEdge ea = edge(self), es = edge(source);
  const Value m = saved(mask, ea || es);
  Value out = emit1(b, "masked_scatter", op, r, {expanded, sums, later}, self, mask, source);
  differentiable(out, "MaskedScatterBackward0", {ea, es}, [m, from = es.shape](Gradients& g) {
    if (g.wants(0)) g.out[0] = masked_fill(g.in[0], m);
    if (g.wants(1)) g.out[1] = masked_scatter_backward(g.in[0], m, from);
  });
  return out;
}
/// The same in place: no copy of self. Without a gradient of its own; who calls it with one writes that down.
inline Value masked_scatter_(Value self, Value mask, Value source) {
  const std::int64_t n = numel(self.shape()).value();
  Builder& b = self.builder();
  const Bytes expanded = Bytes(n), sums = size_of(Elements(n), DType::int64), scan = scan_workspace(n, 8);
  const MemoryOp op{.read = data_bytes(source) + expanded * 2 + sums,
                    .written = data_bytes(source) + expanded + sums,
                    .workspace = expanded + sums + scan,
                    .dtype = self.dtype(),
                    .kernels = 4};
  return emit_inplace(b, "masked_scatter_", op, {expanded, sums, scan}, self, mask, source);
}
/// tensor.repeat: a copy. Backward: dimensions that it added are summed up one by one, then the copies stand as
/// dimensions of their own and are summed up together (FunctionsManual.cpp, repeat_backward).
inline Value repeat(Value a, std::initializer_list<std::int64_t> times) {
  const Shape from = a.shape();
  Shape s = from, copies;
  const int added = static_cast<int>(times.size()) - s.rank();
  std::array<bool, Shape::max_rank> repeated{};
  for (int i = 0; i < added; ++i) s.insert(0, 1);
  int i = 0;
  for (auto k : times) {
    if (i >= added) {
      if (k != 1) {
        repeated[static_cast<std::size_t>(copies.rank())] = true;
        copies.push_back(k);
      }
      copies.push_back(s[i]);
    }
    s[i] = checked_mul(s[i], k);
    ++i;
  }
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes w = size_of(numel(s), t);
  const int kernels = numel(s) == numel(a.shape()) ? copy_kernels(a) : 1;
  const TensorId r = b.result(t, s, "repeat");
  const GradEdge e = edge(a);
  const MemoryOp op{.read = w, .written = w, .dtype = t, .kernels = kernels, .access = Access::strided};
  Value out = emit1(b, "repeat", op, r, {}, a);
  differentiable(out, "RepeatBackward0", {e}, [from, copies, repeated, added](Gradients& g) {
    Value x = std::move(g.in[0]);
    for (int d = 0; d < added; ++d) {
      std::array<bool, Shape::max_rank> first{true};
      x = sum_over(std::move(x), first);
    }
    g.out[0] = view(sum_over(reshape(std::move(x), copies), repeated), from);
  });
  return out;
}
Value col2im(Value columns, const Shape& image);  // gradient.hpp

/// torch.nn.functional.unfold of x[N, C, H, W] by windows without overlap: [N, C rows cols, windows]. One kernel per
/// image, after a copy where x is not contiguous (aten/src/ATen/native/cuda/Im2Col.cu, im2col_out_cuda_template).
inline Value im2col(Value x, std::int64_t rows, std::int64_t cols) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t images = x.size(0), windows = checked_mul(x.size(2) / rows, x.size(3) / cols);
  const Bytes copy = is_contiguous(x) ? Bytes{} : data_bytes(x);
  const Shape s{images, checked_mul(x.size(1), checked_mul(rows, cols)), windows};
  const Bytes written = size_of(numel(s), t);
  const MemoryOp op{.read = written + copy,
                    .written = written + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = static_cast<int>(images) + (copy > Bytes{} ? 1 : 0)};
  const TensorId r = b.result(t, s, "im2col");
  const GradEdge e = edge(x);
  Value columns = emit1(b, "im2col", op, r, {copy}, x);
  differentiable(columns, "Im2ColBackward0", {e},
                 [image = e.shape](Gradients& g) { g.out[0] = col2im(g.in[0], image); });
  return columns;
}
/// The same by squares.
inline Value im2col(Value x, std::int64_t side) { return im2col(std::move(x), side, side); }
/// self.copy_(source).
inline Value copy_(Value self, Value source) { return pointwise_("copy_", std::move(self), std::move(source)); }

/// tensor.reshape: a view where the strides allow one, else a row-major copy.
inline Value reshape(Value v, const Shape& shape) {
  const Shape to = resolve(v.shape(), shape);
  if (!view_strides(v.tensor(), to)) v = clone_contiguous(std::move(v));
  return view(std::move(v), to);
}
inline Value flatten(Value v, int from, int to) {
  Shape s;
  const int rank = v.shape().rank();
  from = wrap(from, rank);
  to = wrap(to, rank);
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < from || i > to) {
      s.push_back(v.size(i));
      continue;
    }
    n = checked_mul(n, v.size(i));
    if (i == to) s.push_back(n);
  }
  return reshape(std::move(v), s);
}
/// torch.repeat_interleave(times, dim): each entry so many times in a row, by a copy of an expanded view
/// (aten/src/ATen/native/Repeat.cpp, repeat_interleave_symint of one count).
inline Value repeat_interleave(Value v, std::int64_t times, int dim) {
  dim = wrap(dim, v.shape().rank());
  Shape each = v.shape();
  each.insert(dim + 1, times);
  return flatten(clone_contiguous(expand(unsqueeze(std::move(v), dim + 1), each)), dim, dim + 1);
}

}  // namespace vlmest::eager
