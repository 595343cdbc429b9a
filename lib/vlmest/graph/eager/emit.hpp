// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <span>

#include <vlmest/graph/guard.hpp>

/// Functions named as torch names them, each recording what that call runs on a GPU. They take Values by value: an
/// argument that is a temporary is released when the op has run, as the interpreter drops it; a copy of a variable
/// leaves the variable alive.
namespace vlmest::eager {

/// Bytes of a tensor's elements, whatever it aliases.
inline Bytes data_bytes(const Tensor& t) { return size_of(numel(t.shape), t.dtype); }
inline Bytes data_bytes(const Value& v) { return v ? data_bytes(v.tensor()) : Bytes{}; }

/// True where autograd must record a call on v.
inline bool needs_grad(const Value& v) { return v && v.builder().needs_grad(v.id()); }
/// v, where the backward needs it, else nothing: what a call saves.
inline Value saved(const Value& v, bool needed) { return needed && v ? v.builder().save(v) : Value(); }

/// The same tensor without its history, where it has one: what runs inside an autograd.Function works on it.
inline Value detached(const Value& v) { return needs_grad(v) ? v.builder().view(v, v.shape(), v.tensor().strides) : v; }

/// A result that its own call saves: without its history, which would hold the call for ever.
inline Value saved_result(const Value& v, bool needed) {
  return needed ? v.builder().save(v.builder().view(v, v.shape(), v.tensor().strides)) : Value();
}

/// What `differentiable` does of a call that it records, compiled once for all kinds of calls.
inline void note_call(const Value& out, const char* name, std::initializer_list<GradEdge> inputs,
                      std::function<void(Gradients&)> run) {
  out.builder().differentiable({.name = name, .inputs = inputs, .run = std::move(run)},
                               std::span<const Value>(&out, 1));
}
/// Records `run` as the backward of the call that made `out` from inputs with these edges; does nothing where none of
/// them needs a gradient.
template <class Run>
void differentiable(const Value& out, const char* name, std::initializer_list<GradEdge> inputs, Run run) {
  bool any = false;
  for (const auto& e : inputs) any = any || e;
  if (any) note_call(out, name, inputs, std::move(run));
}
inline GradEdge edge(const Value& v) { return v ? v.builder().edge(v) : GradEdge{}; }

/// Whether autograd may add to a gradient in place: nothing else holds it or its storage, and nothing observes. A
/// view's storage is also held by its base, which it keeps, in a backward too (torch/csrc/autograd/input_buffer.cpp,
/// can_accumulate_inplace; ADInplaceOrView).
inline bool is_alone(const Value& v) {
  const Builder& b = v.builder();
  return b.references(v.id()) == 1 && v.tensor().alias_of == none && !b.observed;
}

/// One node with one fresh result; then the arguments are dropped.
template <class... In>
Value emit1(Builder& b, AtenOp aten, Op op, TensorId out, std::initializer_list<Bytes> scratch, In&... in) {
  const std::array<TensorId, sizeof...(In)> ids{in.id()...};
  const std::array<TensorId, 1> outs{out};
  b.emit(aten, std::move(op), ids, outs, scratch);
  Value r(b, out);
  (in.reset(), ...);
  return r;
}

/// One node that writes into its first argument and returns it.
template <class... In>
Value emit_inplace(Builder& b, AtenOp aten, Op op, std::initializer_list<Bytes> scratch, Value& self, In&... in) {
  const std::array<TensorId, sizeof...(In) + 1> ids{self.id(), in.id()...};
  const std::array<TensorId, 1> outs{self.id()};
  b.emit(aten, std::move(op), ids, outs, scratch);
  Value r = self;
  self.reset();
  (in.reset(), ...);
  return r;
}

/// True where the elements lie in row-major order without gaps; dimensions of size 1 do not matter
/// (c10/core/Contiguity.h).
inline bool is_contiguous(const Tensor& t) {
  std::int64_t expected = 1;
  for (int i = t.shape.rank() - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}
inline bool is_contiguous(const Value& v) { return is_contiguous(v.tensor()); }

/// Dense strides of shape s, its dimensions sorted outwards by compare(x, y) of two of them: 1 where x comes after y,
/// -1 before, 0 either, by which they stay as they are (aten/src/ATen/TensorIterator.cpp, reorder_dimensions).
template <class Compare>
Shape sorted_strides(const Shape& s, Compare compare) {
  std::array<int, Shape::max_rank> order{};  // innermost first
  const int rank = s.rank();
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = rank - 1 - i;
  for (int i = 1; i < rank; ++i)
    for (int at = i, j = i - 1; j >= 0; --j) {
      auto& x = order[static_cast<std::size_t>(j)];
      auto& y = order[static_cast<std::size_t>(at)];
      const int c = compare(x, y);
      if (c < 0) break;
      if (c > 0) {
        std::swap(x, y);
        at = j;
      }
    }
  Shape r = s;
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) {
    const int d = order[static_cast<std::size_t>(i)];
    r[d] = n;
    n *= s[d] > 1 ? s[d] : 1;
  }
  return r;
}

/// Strides of a fresh tensor of shape s that keeps the order of dimensions of t, gaps or not, as TensorIterator,
/// clone() and empty_like do: dimensions are sorted by stride, those of stride 0 stay where they are (aten/src/ATen/
/// ExpandUtils.cpp, infer_dense_strides).
inline Shape strides_like(const Tensor& t, const Shape& s) {
  if (t.shape.rank() != s.rank() || is_contiguous(t)) return contiguous_strides(s);
  return sorted_strides(s, [&](int x, int y) {
    if (t.strides[x] == 0 || t.strides[y] == 0) return 0;
    if (t.strides[x] != t.strides[y]) return t.strides[x] > t.strides[y] ? 1 : -1;
    return t.shape[x] > t.shape[y] ? 1 : 0;
  });
}

}  // namespace vlmest::eager
