// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/graph/eager/reduce.hpp>

/// Data movement: concatenation, gathers, scatters, fills, padding.
namespace vlmest::eager {

/// Kernels of a concatenation of `inputs` tensors into a result of shape s along `dim`: one, but results of more than
/// four dimensions are filled one input at a time, by copies (aten/src/ATen/native/cuda/Shape.cu, cat_out_cuda).
inline int cat_kernels(std::size_t inputs, const Shape& s, int dim) {
  if (s.rank() <= 4) return 1;
  for (int i = 0; i < wrap(dim, s.rank()); ++i)
    if (s[i] != 1) return static_cast<int>(inputs);
  return 0;  // each part of the result is contiguous: copies by cudaMemcpyAsync
}

/// The edges of several inputs; false where none needs a gradient.
inline bool collect_edges(std::span<const Value> in, std::vector<GradEdge>& edges) {
  bool any = false;
  for (const auto& v : in) {
    edges.push_back(edge(v));
    any = any || edges.back();
  }
  return any;
}

/// The type of a concatenation: promoted over all inputs, the empty ones too (aten/src/ATen/native/TensorShape.cpp,
/// cat's meta function).
inline DType cat_type(std::span<const Value> in) {
  DType t = in[0].dtype();
  for (const auto& v : in) t = promote(t, v.dtype());
  return t;
}
/// Inputs of several types are cast on their way into the result, one kernel each.
inline bool mixed_types(std::span<const Value> in) {
  return std::any_of(in.begin(), in.end(), [&](const Value& v) { return v.dtype() != in[0].dtype(); });
}

/// torch.cat along `dim`; empty tensors are skipped, as torch skips them. A list of one is a plain copy.
inline Value cat(std::span<Value> in, int dim) {
  Builder& b = in[0].builder();
  const Value* first = nullptr;
  Bytes moved{};
  std::int64_t n = 0;
  int filled = 0;
  std::vector<TensorId> ids;
  ids.reserve(in.size());
  for (auto& v : in) {
    ids.push_back(v.id());
    if (v.shape().rank() == 1 && v.size(0) == 0) continue;
    if (!first) first = &v;
    n = checked_add(n, v.size(dim));
    moved += data_bytes(v);
    ++filled;
  }
  if (!first) throw Error("graph", "cat of nothing");
  Shape s = first->shape();
  s[wrap(dim, s.rank())] = n;
  const DType t = cat_type(in);
  const int kernels = mixed_types(in) ? filled : in.size() == 1 ? copy_kernels(*first) : cat_kernels(in.size(), s, dim);
  const TensorId out = b.result(t, s, "cat");
  const std::array<TensorId, 1> outs{out};
  b.emit("cat", MemoryOp{.read = moved, .written = size_of(numel(s), t), .dtype = t, .kernels = kernels}, ids, outs);
  Value r(b, out);
  if (std::vector<GradEdge> edges; collect_edges(in, edges)) {
    std::vector<std::int64_t> sizes;
    for (const auto& v : in) sizes.push_back(v.shape().rank() == 1 && v.size(0) == 0 && s.rank() > 1 ? 0 : v.size(dim));
    // cat_tensors_backward: each input gets a narrow view of the gradient.
    b.differentiable({.name = "CatBackward0",
                      .inputs = edges,
                      .run =
                          [sizes, dim](Gradients& g) {
                            std::int64_t at = 0;
                            for (std::size_t i = 0; i < sizes.size(); ++i) {
                              if (g.wants(i)) g.out[i] = slice(g.in[0], dim, at, at + sizes[i]);
                              at += sizes[i];
                            }
                          }},
                     std::span<const Value>(&r, 1));
  }
  for (auto& v : in) v.reset();
  return r;
}
inline Value cat(Value a, Value c, int dim) {
  std::array<Value, 2> in{std::move(a), std::move(c)};
  return cat(std::span<Value>(in), dim);
}
/// torch.stack along `dim`.
inline Value stack(std::span<Value> in, int dim) {
  Builder& b = in[0].builder();
  Shape s = in[0].shape();
  s.insert(wrap(dim, s.rank() + 1), static_cast<std::int64_t>(in.size()));
  const DType t = cat_type(in);
  std::vector<TensorId> ids;
  for (auto& v : in) ids.push_back(v.id());
  const int kernels = mixed_types(in)  ? static_cast<int>(in.size())
                      : in.size() == 1 ? copy_kernels(in[0])
                                       : cat_kernels(in.size(), s, dim);
  const TensorId out = b.result(t, s, "stack");
  const std::array<TensorId, 1> outs{out};
  const Bytes moved = size_of(numel(s), t);
  b.emit("stack", MemoryOp{.read = moved, .written = moved, .dtype = t, .kernels = kernels}, ids, outs);
  Value r(b, out);
  if (std::vector<GradEdge> edges; collect_edges(in, edges))
    b.differentiable({.name = "StackBackward0",
                      .inputs = edges,
                      .run =
                          [dim](Gradients& g) {
                            for (std::size_t i = 0; i < g.out.size(); ++i)
                              if (g.wants(i)) g.out[i] = select(g.in[0], dim, static_cast<std::int64_t>(i));
                          }},
                     std::span<const Value>(&r, 1));
  for (auto& v : in) v.reset();
  return r;
}

// What derivatives call: gradient.hpp defines them.
Value embedding_dense_backward(Value gradient, Value rows, const Shape& table);
Value masked_fill(Value a, Value mask);
Value index_backward(Value gradient, Value at, const Shape& whole, std::int64_t entries, Bytes found);
Value masked_scatter_backward(Value gradient, Value mask, const Shape& source);

/// Rows of a table by index: embedding, index_select along the first dimension.
inline Value gather_rows(const char* name, Value table, Value index, Shape out) {
  Builder& b = table.builder();
  const DType t = table.dtype();
  const Bytes n = size_of(numel(out), t);
  const TensorId r = b.result(t, out, name);
  return emit1(b, name, MemoryOp{.read = n + data_bytes(index), .written = n, .dtype = t}, r, {}, table, index);
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
inline Value index_select(Value a, int dim, Value index) {
  Shape s = a.shape();
  s[wrap(dim, s.rank())] = index.size(0);
  return gather_rows("index_select", std::move(a), std::move(index), s);
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

/// torch.tensor(x, device=cuda): a copy from the host.
inline Value from_host(Builder& b, const Shape& s, DType t) {
  const TensorId r = b.result(t, s, "tensor");
  const std::array<TensorId, 1> outs{r};
  b.emit("lift_fresh", HostSync{size_of(numel(s), t)}, {}, outs);
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
/// masked_scatter_cuda; a copy of self is made first because the call is not in place).
inline Value masked_scatter(Value self, Value mask, Value source) {
  const std::int64_t n = numel(self.shape()).value();
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Bytes size = data_bytes(self), expanded = Bytes(n), sums = size_of(Elements(n), DType::int64);
  const Bytes scan = scan_workspace(n, 8);
  const TensorId r = b.result(t, self.shape(), self.tensor().strides, "masked_scatter");
  const MemoryOp op{.read = size * 2 + data_bytes(source) + expanded * 2 + sums,
                    .written = size * 2 + expanded + sums,
                    .workspace = expanded + sums + scan,
                    .dtype = t,
                    .kernels = 5};
  const GradEdge ea = edge(self), es = edge(source);
  const Value m = saved(mask, ea || es);
  Value out = emit1(b, "masked_scatter", op, r, {expanded, sums, scan}, self, mask, source);
  differentiable(out, "MaskedScatterBackward0", {ea, es}, [m, from = es.shape](Gradients& g) {
    if (g.wants(0)) g.out[0] = masked_fill(g.in[0], m);
    if (g.wants(1)) g.out[1] = masked_scatter_backward(g.in[0], m, from);
  });
  return out;
}
/// tensor.repeat: a copy.
inline Value repeat(Value a, std::initializer_list<std::int64_t> times) {
  Shape s = a.shape();
  while (s.rank() < static_cast<int>(times.size())) s.insert(0, 1);
  int i = 0;
  for (auto k : times) {
    s[i] = checked_mul(s[i], k);
    ++i;
  }
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes w = size_of(numel(s), t);
  const int kernels = numel(s) == numel(a.shape()) ? copy_kernels(a) : 1;
  const TensorId r = b.result(t, s, "repeat");
  return emit1(b, "repeat", MemoryOp{.read = w, .written = w, .dtype = t, .kernels = kernels}, r, {}, a);
}
Value col2im(Value columns, const Shape& image);  // gradient.hpp

/// torch.nn.functional.unfold of x[N, C, H, W] by squares without overlap: [N, C side side, squares]. One kernel per
/// image, after a copy where x is not contiguous (aten/src/ATen/native/cuda/Im2Col.cu, im2col_out_cuda_template).
inline Value im2col(Value x, std::int64_t side) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t images = x.size(0), squares = checked_mul(x.size(2) / side, x.size(3) / side);
  const Bytes copy = is_contiguous(x) ? Bytes{} : data_bytes(x);
  const Shape s{images, checked_mul(x.size(1), checked_mul(side, side)), squares};
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

}  // namespace vlmest::eager
