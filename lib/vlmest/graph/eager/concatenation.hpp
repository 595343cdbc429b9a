// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/view.hpp>

/// Several tensors into one: torch.cat, torch.stack.
namespace vlmest::eager {

/// Kernels of a concatenation of `inputs` tensors into a result of shape s along `dim`: one, but results of more than
/// four dimensions are filled one input at a time, by copies (aten/src/ATen/native/cuda/Shape.cu, cat_out_cuda).
inline int cat_kernels(std::size_t inputs, const Shape& s, int dim) {
  if (s.rank() <= 4) return 1;
  for (int i = 0; i < wrap(dim, s.rank()); ++i)
    if (s[i] != 1) return static_cast<int>(inputs);
  return 0;  // each part of the result is contiguous: copies by cudaMemcpyAsync
}

/// Vector loads where every input is contiguous and its share of each slice of the result a multiple of 16 bytes
/// (Shape.cu, CatArrayBatchedCopy_vectorized).
inline Access cat_access(std::span<const Value> in, int dim) {
  for (const auto& v : in) {
    std::int64_t slice = bits(v.dtype()) / 8;
    for (int i = wrap(dim, v.shape().rank()); i < v.shape().rank(); ++i) slice *= v.size(i);
    if (!is_contiguous(v) || slice % 16 != 0 || slice == 0) return Access::concatenation;
  }
  return Access::contiguous;
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
  const MemoryOp op{
      .read = moved, .written = size_of(numel(s), t), .dtype = t, .kernels = kernels, .access = cat_access(in, dim)};
  b.emit("cat", op, ids, outs);
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
  const MemoryOp op{.read = moved, .written = moved, .dtype = t, .kernels = kernels, .access = Access::concatenation};
  b.emit("stack", op, ids, outs);
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

}  // namespace vlmest::eager
