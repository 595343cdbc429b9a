// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/eager/attention.hpp>
#include <vlmest/graph/eager/convolution.hpp>
#include <vlmest/graph/eager/selection.hpp>

/// Ops that only backward passes run (tools/autograd/derivatives.yaml, torch/csrc/autograd/FunctionsManual.cpp).
namespace vlmest::eager {

/// at::sum_to: broadcast dimensions are summed in one reduction, then leading ones are dropped.
inline Value sum_to(Value gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  Shape kept = gradient.shape();
  const int lead = kept.rank() - shape.rank();
  std::array<bool, Shape::max_rank> reduced{};
  bool reduces = false;
  for (int i = 0; i < kept.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && kept[i] != 1)) {
      kept[i] = 1;
      reduces = reduced[static_cast<std::size_t>(i)] = true;
    }
  Value r = gradient;
  if (reduces) {
    const DType t = gradient.dtype();
    r = reduce("sum.dim_IntList", t, kept, gradient, {}, 1,
               reduction_scratch(gradient.tensor(), reduced, is_half(t) ? 4 : bits(t) / 8, gradient.builder().gpu));
  }
  gradient.reset();
  return lead > 0 ? view(std::move(r), shape) : r;
}

/// sum() over the marked dimensions, which are gone then.
inline Value sum_over(Value a, const std::array<bool, Shape::max_rank>& reduced) {
  Shape left;
  for (int i = 0; i < a.shape().rank(); ++i)
    if (!reduced[static_cast<std::size_t>(i)]) left.push_back(a.size(i));
  if (left == a.shape()) return a;
  const DType t = a.dtype();
  const ReductionScratch split = reduction_scratch(a.tensor(), reduced, is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  return reduce("sum.dim_IntList", t, left, std::move(a), {}, 1, split);
}

/// A tensor of zeros with the gradient copied into a part of it: aten slice_backward, select_backward.
inline Value embed_gradient(const char* name, Value gradient, const Shape& whole) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const Bytes part = data_bytes(gradient);
  const TensorId r = b.result(t, whole, name);
  const MemoryOp op{
      .read = part, .written = size_of(numel(whole), t) + part, .dtype = t, .kernels = part > Bytes{} ? 2 : 1};
  return emit1(b, name, op, r, {}, gradient);
}
inline Value slice_backward(Value gradient, const Shape& whole, int, std::int64_t, std::int64_t, std::int64_t) {
  return embed_gradient("slice_backward", std::move(gradient), whole);
}
inline Value select_backward(Value gradient, const Shape& whole, int, std::int64_t) {
  return embed_gradient("select_backward", std::move(gradient), whole);
}

/// The windows that im2col took apart, added up again: one kernel per image, after a copy of columns that are not
/// row-major (aten/src/ATen/native/cuda/Col2Im.cu, col2im_out_cuda_template).
inline Value col2im(Value columns, const Shape& image) {
  Builder& b = columns.builder();
  const DType t = columns.dtype();
  const Bytes n = data_bytes(columns), copy = is_contiguous(columns) ? Bytes{} : n;
  const TensorId r = b.result(t, image, "col2im");
  const MemoryOp op{.read = n + copy,
                    .written = size_of(numel(image), t) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = static_cast<int>(image[0]) + (copy > Bytes{} ? 1 : 0)};
  return emit1(b, "col2im", op, r, {copy}, columns);
}

/// Scratch of a gradient of n rows that are sorted, cut into segments of equal rows and these into parts of at most
/// ten, which are summed up in fp32 (aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu,
/// embedding_backward_cuda_kernel; sorted rows, their order, the segments' beginnings, for each possible segment the
/// number and the beginning of its parts, the parts' beginnings, two counts). While rows are sorted with their places,
/// the table is not there yet.
constexpr Bytes sorted_rows_workspace(std::int64_t n, std::int64_t entries, std::int64_t width, DType t) {
  const std::int64_t segments = std::min(n, entries), parts = checked_add(n / 10, segments);
  const std::int64_t indices =
      checked_add(checked_mul(n, 3), checked_add(checked_mul(segments, 2), checked_add(parts, 2)));
  const Bytes summing = size_of(Elements(indices), DType::int64) +
                        size_of(Elements(checked_mul(parts, width)), is_half(t) ? DType::fp32 : t);
  const Bytes sorting = size_of(Elements(checked_mul(n, 3)), DType::int64) + radix_sort_workspace(n),
              table = size_of(Elements(checked_mul(entries, width)), t);
  return std::max(summing, sorting > table ? sorting - table : Bytes{});
}
/// Scratch of an embedding's gradient over n rows: none up to 3072, more are sorted
/// (aten/src/ATen/native/cuda/Embedding.cu, embedding_dense_backward_cuda).
constexpr Bytes embedding_backward_workspace(std::int64_t n, std::int64_t entries, std::int64_t width, DType t) {
  return n <= 3072 ? Bytes{} : sorted_rows_workspace(n, entries, width, t);
}
/// A dense gradient of the whole table, zeroed and added to by rows; a gradient or numbers with gaps are packed first.
inline Value embedding_dense_backward(Value gradient, Value rows, const Shape& table) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const TensorId r = b.result(t, table, "embedding_dense_backward");
  const auto packed = [](const Value& v) { return is_contiguous(v) ? Bytes{} : data_bytes(v); };
  const Bytes n = size_of(numel(table), t), copies = packed(gradient) + packed(rows),
              scratch = embedding_backward_workspace(numel(rows.shape()).value(), table[0], table[1], t);
  const int copied = (is_contiguous(gradient) ? 0 : 1) + (is_contiguous(rows) ? 0 : 1);
  const MemoryOp op{.read = data_bytes(gradient) + data_bytes(rows) + copies + scratch,
                    .written = n + copies + scratch,
                    .workspace = copies + scratch,
                    .dtype = t,
                    .kernels = (scratch > Bytes{} ? 12 : 2) + copied};
  return emit1(b, "embedding_dense_backward", op, r, {packed(gradient), packed(rows), scratch}, gradient, rows);
}
/// self.masked_fill(mask, number): the copy that is filled is row-major
/// (aten/src/ATen/native/TensorAdvancedIndexing.cpp, masked_fill).
inline Value masked_fill(Value a, Value mask) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  const Value m = saved(mask, static_cast<bool>(e));
  const Shape s = broadcast(a.shape(), mask.shape()), strides = contiguous_strides(s);
  const Bytes written = size_of(numel(s), t);
  const MemoryOp op{.read = data_bytes(a) + data_bytes(mask),
                    .written = written,
                    .dtype = t,
                    .kernels = pieces(std::max({written, data_bytes(a), data_bytes(mask)})),
                    .access = access(s, strides, t, a, mask),
                    .elements = numel(s)};
  Builder& b = a.builder();
  Value r = emit1(b, "masked_fill.Scalar", op, b.result(t, s, "masked_fill.Scalar"), {}, a, mask);
  differentiable(r, "MaskedFillBackward0", {e}, [m](Gradients& g) { g.out[0] = masked_fill(g.in[0], m); });
  return r;
}
inline Value masked_fill_(Value a, Value mask) {
  const GradEdge e = edge(a);
  const Value m = saved(mask, static_cast<bool>(e));
  Value r = pointwise_("masked_fill_.Scalar", std::move(a), std::move(mask));
  differentiable(r, "MaskedFillBackward0", {e}, [m](Gradients& g) { g.out[0] = masked_fill(g.in[0], m); });
  return r;
}
/// What scatter_to_zeros is made of.
struct ScatterNames {
  const char *zeros, *in_place, *observed;
};
/// zeros with the gradient put to where its entries were taken from.
inline Value scatter_to_zeros(const ScatterNames& names, Value gradient, Value at, const Shape& whole) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const Bytes n = size_of(numel(whole), t), part = data_bytes(gradient), entries = data_bytes(at);
  Value zeros = fill(b, names.zeros, whole, t);
  if (!b.observed)
    return emit_inplace(b, names.in_place, MemoryOp{.read = part + entries, .written = part, .dtype = t}, {}, zeros, at,
                        gradient);
  const TensorId r = b.result(t, whole, "scatter");
  return emit1(b, names.observed, MemoryOp{.read = n + part + entries, .written = n + part, .dtype = t, .kernels = 2},
               r, {}, zeros, at, gradient);
}
/// Of topk and max: each entry of self is there once (FunctionsManual.cpp, value_selecting_reduction_backward).
inline Value scatter_backward(Value gradient, Value at, const Shape& whole) {
  return scatter_to_zeros({"zeros", "scatter_.src", "scatter.src"}, std::move(gradient), std::move(at), whole);
}
/// Of gather, whose indices may repeat (FunctionsManual.cpp, gather_backward).
inline Value gather_backward(Value gradient, Value at, const Shape& whole) {
  return scatter_to_zeros({"new_zeros", "scatter_add_", "scatter_add"}, std::move(gradient), std::move(at), whole);
}
/// Of index_select: zeros to which the rows are added (FunctionsManual.cpp, index_select_backward).
inline Value index_select_backward(Value gradient, Value at, const Shape& whole) {
  return scatter_to_zeros({"new_zeros", "index_add_", "index_add"}, std::move(gradient), std::move(at), whole);
}
/// index_backward: zeros to which the gradient's rows are added at the `entries` places that were read
/// (aten/src/ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel): linear places, sorted with their order in the
/// gradient, so that equal ones follow each other; `found` is what making the linear places takes beyond that. `at` is
/// empty where the places come from the host.
inline Value index_backward(Value gradient, Value at, const Shape& whole, std::int64_t entries, Bytes found) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const Bytes n = size_of(numel(whole), t), part = data_bytes(gradient),
              places = size_of(Elements(entries), DType::int64);
  const std::int64_t slice = entries == 0 ? 1 : std::max<std::int64_t>(numel(gradient.shape()).value() / entries, 1);
  std::int64_t largest = std::max<std::int64_t>(numel(whole).value() / slice - 1, 0);
  int bits = 1;
  for (; largest > 1; largest >>= 1) ++bits;
  const Bytes sorting = places * 4 + radix_sort_workspace(entries, bits);
  const Bytes scratch = (is_contiguous(gradient) ? Bytes{} : part) + std::max(sorting, found);
  Value zeros = fill(b, "new_zeros", whole, t);
  const MemoryOp op{
      .read = part * 2 + places * 6, .written = part + places * 6, .workspace = scratch, .dtype = t, .kernels = 8};
  if (!b.observed) return emit_inplace(b, "_index_put_impl_", op, {scratch}, zeros, at, gradient);
  const TensorId r = b.result(t, whole, "index_put");
  MemoryOp copied = op;
  copied.read += n;
  copied.written += n;
  return emit1(b, "index_put", copied, r, {scratch}, zeros, at, gradient);
}
/// masked_scatter_backward: the masked elements of the gradient, found by nonzero, one int64 for each element and
/// dimension (FunctionsManual.cpp, masked_scatter_backward_symint: masked_select). The broadcast mask is packed while
/// the search runs, which is over when the result is allocated.
inline Value masked_scatter_backward(Value gradient, Value mask, const Shape& source) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const std::int64_t n = numel(gradient.shape()).value();
  const Bytes flags = Bytes(n), picked = size_of(numel(source), t);
  const Bytes indices = size_of(numel(source), DType::int64) * gradient.shape().rank();
  const Bytes searching = flags + nonzero_selecting(n), search = searching > picked ? searching - picked : Bytes{};
  const TensorId r = b.result(t, source, "masked_scatter_backward");
  const MemoryOp op{.read = data_bytes(gradient) + flags * 2 + indices,
                    .written = picked + flags + indices,
                    .workspace = indices + search,
                    .dtype = t,
                    .kernels = 6};
  return emit1(b, "masked_scatter_backward", op, r, {indices, search}, gradient, mask);
}

/// native_layer_norm_backward: gradients of the input, the weight and the bias, as far as they are wanted.
inline void layer_norm_backward(const Norm& op, Gradients& g, const Value& x, const Value& weight, const Value& mean,
                                const Value& rstd) {
  Builder& b = x.builder();
  const DType t = op.dtype;
  std::vector<TensorId> outs;
  std::vector<std::size_t> to;
  const auto result = [&](std::size_t i, const Shape& s, const char* name) {
    if (!g.wants(i)) return;
    outs.push_back(b.result(t, s, name));
    to.push_back(i);
  };
  result(0, x.shape(), "input gradient");
  result(1, Shape{op.width}, "weight gradient");
  result(2, Shape{op.width}, "bias gradient");
  const std::array<TensorId, 5> ins{g.in[0].id(), x.id(), mean.id(), rstd.id(), weight ? weight.id() : none};
  const Bytes rows = data_bytes(x);
  const Bytes copy = (is_contiguous(x) ? Bytes{} : rows) + (is_contiguous(g.in[0]) ? Bytes{} : rows);
  b.emit("native_layer_norm_backward",
         MemoryOp{.read = rows * 4, .written = rows, .workspace = copy, .dtype = t, .kernels = g.wants(1) ? 2 : 1}, ins,
         outs, {copy});
  for (std::size_t i = 0; i < outs.size(); ++i) g.out[to[i]] = Value(b, outs[i]);
}

/// convolution_backward: gradients of the input (where wanted) and the weight, in the input's layout or row-major, and
/// of the bias, which is a sum of its own when the others' `scratch` is free again.
inline void convolution_backward(const Convolution& op, Gradients& g, const Value& x, const Value& weight,
                                 Bytes scratch, bool keeps_layout) {
  Builder& b = x.builder();
  const DType t = op.dtype;
  std::vector<TensorId> outs;
  std::vector<std::size_t> to;
  const auto result = [&](std::size_t i, const Shape& s, const char* name) {
    if (!g.wants(i)) return;
    outs.push_back(b.result(
        t, s, keeps_layout && s.rank() == x.shape().rank() ? strides_like(x.tensor(), s) : contiguous_strides(s),
        name));
    to.push_back(i);
  };
  result(0, x.shape(), "input gradient");
  result(1, weight.shape(), "weight gradient");
  result(2, Shape{op.out_channels}, "bias gradient");
  const std::array<TensorId, 3> ins{g.in[0].id(), x.id(), weight.id()};
  const Bytes bias = g.wants(2) ? size_of(Elements(op.out_channels), t) : Bytes{};
  scratch = scratch > bias ? scratch - bias : Bytes{};
  Convolution back = op;
  back.products = (g.wants(0) ? 1 : 0) + (g.wants(1) ? 1 : 0);
  back.workspace = scratch;
  b.emit("convolution_backward", back, ins, outs, {scratch});
  for (std::size_t i = 0; i < outs.size(); ++i) g.out[to[i]] = Value(b, outs[i]);
}

/// The backward of taking a tensor apart: its parts' gradients are concatenated or stacked again; a part that nothing
/// flows from counts as zeros.
inline void join_gradients(const char* name, const std::vector<Value>& parts, const GradEdge& whole, int dim,
                           bool stacked) {
  Builder& b = parts.front().builder();
  std::vector<Shape> shapes;
  for (const auto& p : parts) shapes.push_back(p.shape());
  GradCall call{.name = name, .inputs = {whole}, .run = [shapes, dim, stacked, t = whole.dtype](Gradients& g) {
                  Builder* at = nullptr;
                  for (auto& x : g.in)
                    if (x) at = &x.builder();
                  for (std::size_t i = 0; i < g.in.size(); ++i)
                    if (!g.in[i]) g.in[i] = fill(*at, "zeros", shapes[i], t);
                  g.out[0] = stacked ? stack(g.in, dim) : cat(std::span<Value>(g.in), dim);
                }};
  b.differentiable(std::move(call), parts);
}

}  // namespace vlmest::eager
