// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <vlmest/graph/eager/emit.hpp>

/// Views: new sizes and strides over the same storage; nothing runs and nothing is allocated.
namespace vlmest::eager {

// What derivatives call, and a reshape that copies: data.hpp and gradient.hpp define them, <vlmest/graph/eager.hpp> has
// all.
Value reshape(Value v, const Shape& shape);
Value sum_to(Value gradient, const Shape& shape);
Value sum_over(Value a, const std::array<bool, Shape::max_rank>& reduced);
Value slice_backward(Value gradient, const Shape& whole, int dim, std::int64_t begin, std::int64_t end,
                     std::int64_t step);
Value select_backward(Value gradient, const Shape& whole, int dim, std::int64_t at);
void join_gradients(const char* name, const std::vector<Value>& parts, const GradEdge& whole, int dim, bool stacked);

inline int wrap(int dim, int rank) { return dim < 0 ? dim + rank : dim; }

/// Strides with which `t` can be read in the new shape without a copy, or nothing (aten/src/ATen/TensorUtils.cpp,
/// computeStride).
inline std::optional<Shape> view_strides(const Tensor& t, const Shape& to) {
  if (numel(t.shape) != numel(to)) throw Error("graph", "view of " + to_string(t.shape) + " as " + to_string(to));
  if (numel(to) == Elements(0) || is_contiguous(t)) return contiguous_strides(to);
  Shape r = to;
  int d = to.rank() - 1;
  std::int64_t chunk = t.strides[-1], count = 1, placed = 1;
  for (int i = t.shape.rank() - 1; i >= 0; --i) {
    count *= t.shape[i];
    // A chunk of dimensions ends where the next outer one does not continue it.
    if (i == 0 || (t.shape[i - 1] != 1 && t.strides[i - 1] != count * chunk)) {
      while (d >= 0 && (placed < count || to[d] == 1)) {
        r[d] = placed * chunk;
        placed *= to[d];
        --d;
      }
      if (placed != count) return std::nullopt;
      if (i > 0) {
        chunk = t.strides[i - 1];
        count = placed = 1;
      }
    }
  }
  if (d != -1) return std::nullopt;
  return r;
}

/// torch.Tensor.view; one size may be -1.
inline Shape resolve(const Shape& from, Shape to) {
  std::int64_t known = 1;
  int open = -1;
  for (int i = 0; i < to.rank(); ++i)
    if (to[i] == -1)
      open = i;
    else
      known *= to[i];
  if (open >= 0 && known != 0 && numel(from).value() % known != 0)
    throw Error("graph", "shape " + to_string(to) + " is invalid for " + to_string(from));
  if (open >= 0) to[open] = known == 0 ? 0 : numel(from).value() / known;
  return to;
}
inline Value view(Value v, const Shape& shape) {
  const Shape to = resolve(v.shape(), shape);
  const auto strides = view_strides(v.tensor(), to);
  if (!strides) throw Error("graph", "view of a non-contiguous " + to_string(v.shape()));
  Value r = v.builder().view(v, to, *strides);
  if (const GradEdge e = edge(v))
    differentiable(r, "ViewBackward0", {e},
                   [from = e.shape](Gradients& g) { g.out[0] = reshape(std::move(g.in[0]), from); });
  v.reset();
  return r;
}
inline Value transpose(Value v, int a, int b) {
  Shape s = v.shape(), t = v.tensor().strides;
  a = wrap(a, s.rank());
  b = wrap(b, s.rank());
  std::swap(s[a], s[b]);
  std::swap(t[a], t[b]);
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "TransposeBackward0", {e},
                   [a, b](Gradients& g) { g.out[0] = transpose(std::move(g.in[0]), a, b); });
  v.reset();
  return r;
}
inline Value permute(Value v, std::span<const int> order) {
  Shape s, t;
  for (int d : order) {
    s.push_back(v.shape()[d]);
    t.push_back(v.tensor().strides[d]);
  }
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v)) {
    std::vector<int> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(wrap(order[i], s.rank()))] = static_cast<int>(i);
    differentiable(r, "PermuteBackward0", {e}, [back](Gradients& g) { g.out[0] = permute(std::move(g.in[0]), back); });
  }
  v.reset();
  return r;
}
inline Value permute(Value v, std::initializer_list<int> order) {
  return permute(std::move(v), std::span<const int>(order.begin(), order.size()));
}
inline Value squeeze(Value v, int dim);
inline Value unsqueeze(Value v, int dim) {
  Shape s = v.shape(), t = v.tensor().strides;
  dim = wrap(dim, s.rank() + 1);
  const std::int64_t stride = dim < s.rank() ? s[dim] * t[dim] : 1;
  s.insert(dim, 1);
  t.insert(dim, stride);
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "UnsqueezeBackward0", {e}, [dim](Gradients& g) { g.out[0] = squeeze(std::move(g.in[0]), dim); });
  v.reset();
  return r;
}
inline Value squeeze(Value v, int dim) {
  Shape s = v.shape(), t = v.tensor().strides;
  dim = wrap(dim, s.rank());
  const bool drops = s[dim] == 1;
  if (drops) {
    s.erase(dim);
    t.erase(dim);
  }
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "SqueezeBackward1", {e}, [dim, drops](Gradients& g) {
      g.out[0] = drops ? unsqueeze(std::move(g.in[0]), dim) : std::move(g.in[0]);
    });
  v.reset();
  return r;
}
/// torch.Tensor.expand; -1 keeps a size, new leading dimensions are broadcast.
inline Value expand(Value v, const Shape& shape) {
  const int lead = shape.rank() - v.shape().rank();
  Shape s = shape, t = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < lead) {
      t[i] = 0;
      continue;
    }
    const std::int64_t have = v.shape()[i - lead];
    if (s[i] == -1) s[i] = have;
    t[i] = have == s[i] ? v.tensor().strides[i - lead] : 0;
  }
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "ExpandBackward0", {e},
                   [from = e.shape](Gradients& g) { g.out[0] = sum_to(std::move(g.in[0]), from); });
  v.reset();
  return r;
}
/// v[..., begin:end:step, ...] along `dim`, a view also where the range is the whole dimension, as of v[begin:end].
inline Value slice_view(Value v, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
  Shape s = v.shape(), t = v.tensor().strides;
  dim = wrap(dim, s.rank());
  const std::int64_t n = s[dim];
  if (begin < 0) begin += n;
  if (end < 0) end += n;
  end = std::clamp(end, std::int64_t{0}, n);
  begin = std::clamp(begin, std::int64_t{0}, end);
  s[dim] = (end - begin + step - 1) / step;
  t[dim] *= step;
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "SliceBackward0", {e}, [whole = e.shape, dim, begin, end, step](Gradients& g) {
      g.out[0] = slice_backward(std::move(g.in[0]), whole, dim, begin, end, step);
    });
  v.reset();
  return r;
}
/// The same, by one range among several indices: where it is the whole dimension, there is no view
/// (aten/src/ATen/TensorIndexing.h, applySlice).
inline Value slice(Value v, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
  if (begin == 0 && end >= v.shape()[wrap(dim, v.shape().rank())] && step == 1) return v;
  return slice_view(std::move(v), dim, begin, end, step);
}
/// v[..., i, ...]: the dimension goes.
inline Value select(Value v, int dim, std::int64_t at = 0) {
  Shape s = v.shape(), t = v.tensor().strides;
  dim = wrap(dim, s.rank());
  s.erase(dim);
  t.erase(dim);
  Value r = v.builder().view(v, s, t);
  if (const GradEdge e = edge(v))
    differentiable(r, "SelectBackward0", {e}, [whole = e.shape, dim, at](Gradients& g) {
      g.out[0] = select_backward(std::move(g.in[0]), whole, dim, at);
    });
  v.reset();
  return r;
}
inline std::vector<Value> split(Value v, std::span<const std::int64_t> sizes, int dim) {
  std::vector<Value> r;
  r.reserve(sizes.size());
  const GradEdge e = edge(v);
  {
    NoGrad views(v.builder());
    std::int64_t at = 0;
    for (auto n : sizes) {
      r.push_back(slice(v, dim, at, at + n));
      at += n;
    }
  }
  if (e) join_gradients("SplitWithSizesBackward0", r, e, wrap(dim, e.shape.rank()), false);
  v.reset();
  return r;
}
inline std::vector<Value> unbind(Value v, int dim) {
  std::vector<Value> r;
  const std::int64_t n = v.size(dim);
  r.reserve(static_cast<std::size_t>(n));
  const GradEdge e = edge(v);
  {
    NoGrad views(v.builder());
    for (std::int64_t i = 0; i < n; ++i) r.push_back(select(v, dim, i));
  }
  if (e) join_gradients("UnbindBackward0", r, e, wrap(dim, e.shape.rank()), true);
  v.reset();
  return r;
}

}  // namespace vlmest::eager
