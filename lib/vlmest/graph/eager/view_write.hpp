// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/graph/eager/selection.hpp>

/// Arithmetic in place on a view, as autograd follows it: what the viewed tensor was is replaced by a CopySlices around
/// the arithmetic's own backward, and the view becomes one of the storage, whose gradient is put into zeros
/// (torch/csrc/autograd/variable.cpp, grad_fn; functions/tensor.cpp, CopySlices; FunctionsManual.cpp,
/// as_strided_backward).
namespace vlmest::eager {

/// The backward of what wrote into part_of(whole): a copy of the whole's gradient, of which the part goes through
/// `own`, a function of it that gives the gradients of the part as it was and of the other operand.
template <class PartOf, class Own>
void copy_slices(Value& whole, PartOf part_of, const GradEdge& before, const GradEdge& other, Own own) {
  GradCall call{.name = "CopySlices", .inputs = {before, other}, .run = [part_of, own](Gradients& g) {
                  Builder& b = g.in[0].builder();
                  Value copy = empty(b, "new_empty_strided", g.in[0].shape(), g.in[0].dtype());
                  copy_over(copy, g.in[0]);
                  std::pair<Value, Value> to = own(clone_contiguous(part_of(copy)));
                  if (g.wants(0)) {
                    copy_over(part_of(copy), std::move(to.first));
                    g.out[0] = std::move(copy);
                  }
                  if (g.wants(1)) g.out[1] = std::move(to.second);
                }};
  whole.builder().differentiable(std::move(call), std::span<const Value>(&whole, 1));
}

/// A view without the dimensions of one element, which as_strided_backward leaves out.
inline Value without_ones(const Value& v) {
  Shape s;
  for (int i = 0; i < v.shape().rank(); ++i)
    if (v.size(i) != 1) s.push_back(v.size(i));
  return view(v, s);
}

/// part_of(whole) behind a write into it.
template <class PartOf>
Value written_part(const Value& whole, PartOf part_of) {
  Value part;
  {
    NoGrad off(whole.builder());
    part = part_of(whole);
  }
  differentiable(part, "AsStridedBackward0", {edge(whole)}, [s = whole.shape(), part_of](Gradients& g) {
    const Value storage = fill(g.in[0].builder(), "new_zeros", Shape{numel(s).value()}, g.in[0].dtype());
    Value zeros = view(storage, s);
    copy_over(without_ones(part_of(zeros)), without_ones(g.in[0]));
    g.out[0] = std::move(zeros);
  });
  return part;
}

/// part_of(whole) += term; gives the part.
template <class PartOf>
Value add_to_part(Value& whole, PartOf part_of, Value term) {
  const GradEdge before = edge(whole), other = edge(term);
  {
    NoGrad off(whole.builder());
    pointwise_(accumulate, part_of(whole), std::move(term));
  }
  if (!before && !other) return part_of(whole);
  copy_slices(whole, part_of, before, other, [](Value part) {
    Value same = part;
    return std::pair{std::move(part), std::move(same)};
  });
  return written_part(whole, part_of);
}

/// self.scatter(0, index, 0): a copy with zeros where the index points (tools/autograd/derivatives.yaml, scatter.src).
inline Value zeros_at_rows(Value self, Value index) {
  Builder& b = self.builder();
  const Bytes whole = data_bytes(self), places = data_bytes(index);
  const TensorId r = b.result(self.dtype(), self.shape(), "scatter");
  const MemoryOp op{.read = whole + places, .written = whole + data_bytes(self), .dtype = self.dtype(), .kernels = 2};
  return emit1(b, "scatter.value", op, r, {}, self, index);
}
/// self.gather(0, index).
inline Value gather_first(Value self, Value index) {
  Builder& b = self.builder();
  const Bytes moved = size_of(numel(index.shape()), self.dtype());
  const MemoryOp op{.read = moved + data_bytes(index), .written = moved, .dtype = self.dtype()};
  return emit1(b, "gather", op, b.result(self.dtype(), index.shape(), "gather"), {}, self, index);
}

/// part_of(whole)[mask] = values, a row of values for each true of the mask; written_part gives the part.
template <class PartOf>
void put_masked(Value& whole, PartOf part_of, Value mask, const Value& values) {
  const GradEdge before = edge(whole), other = edge(values);
  const std::int64_t selected = values.size(0);
  const Value at = saved(mask, before || other);
  {
    NoGrad off(whole.builder());
    masked_index_put_(part_of(whole), std::move(mask), values, selected);
  }
  if (!before && !other) return;
  const bool over = static_cast<bool>(before), written = static_cast<bool>(other);
  copy_slices(whole, part_of, before, other, [=, part = values.shape()](Value gradient) {
    std::pair<Value, Value> to;
    if (over) to.first = zeros_at_mask(gradient, at, part, selected);
    if (written) to.second = masked_index(gradient, at, selected);
    return to;
  });
}

/// part_of(whole).scatter_(0, index, values), index int64 of the values' shape.
template <class PartOf>
void scatter_rows(Value& whole, PartOf part_of, Value index, Value values) {
  const GradEdge before = edge(whole), other = edge(values);
  const Value at = saved(index, before || other);
  {
    NoGrad off(whole.builder());
    const Bytes moved = data_bytes(values);
    const MemoryOp op{.read = moved + data_bytes(index), .written = moved, .dtype = whole.dtype()};
    Value part = part_of(whole);
    emit_inplace(whole.builder(), "scatter_.src", op, {}, part, index, values);
  }
  if (!before && !other) return;
  const bool over = static_cast<bool>(before), written = static_cast<bool>(other);
  copy_slices(whole, part_of, before, other, [=](Value gradient) {
    std::pair<Value, Value> to;
    if (over) to.first = zeros_at_rows(gradient, at);
    if (written) to.second = gather_first(gradient, at);
    return to;
  });
}

/// part_of(whole) *= number; gives the part.
template <class PartOf>
Value scale_part(Value& whole, PartOf part_of) {
  const GradEdge before = edge(whole);
  {
    NoGrad off(whole.builder());
    pointwise_("mul_.Tensor", part_of(whole));
  }
  if (!before) return part_of(whole);
  copy_slices(whole, part_of, before, {}, [](Value part) {
    const DType t = part.dtype();
    return std::pair{pointwise("mul.Tensor", t, std::move(part)), Value()};
  });
  return written_part(whole, part_of);
}

/// Python's whole[begin:end] += term: the part is added to, then copied onto itself.
inline void add_to_slice(Value& whole, std::int64_t begin, std::int64_t end, Value term) {
  const auto part_of = [begin, end](const Value& v) { return slice(v, 0, begin, end); };
  Value part = add_to_part(whole, part_of, std::move(term));
  assign(whole, part_of, std::move(part));
}

}  // namespace vlmest::eager
