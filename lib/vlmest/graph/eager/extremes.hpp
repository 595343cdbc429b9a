// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/graph/eager/routing.hpp>

/// Ops that hand a gradient to some of their operand's elements alone: clamp, max, gather.
namespace vlmest::eager {

/// Which of the numbers tensor.clamp is given.
enum class ClampedAt : std::uint8_t { min, max, both };
/// tensor.clamp by numbers. Backward: zero where a bound held (FunctionsManual.cpp, clamp_backward: one expression,
/// whose temporaries live to its end).
inline Value clamp(Value a, ClampedAt bound) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  const Value s = saved(a, static_cast<bool>(e));
  Value r = pointwise("clamp", t, std::move(a));
  differentiable(r, "ClampBackward1", {e}, [s, bound](Gradients& g) {
    const bool both = bound == ClampedAt::both;
    Value zero = fill(s.builder(), "scalar_tensor", Shape{}, g.in[0].dtype());
    Value inside = compare_scalar(bound == ClampedAt::max ? "le.Scalar" : "ge.Scalar", s);
    const Value below = both ? compare_scalar("le.Scalar", s) : Value();
    if (both) inside = pointwise_("logical_and_", std::move(inside), below);
    g.out[0] = where(std::move(inside), g.in[0], std::move(zero));
  });
  return r;
}

/// tensor.clamp(min=low, max=high) by tensors that need no gradient (FunctionsManual.cpp, clamp_backward: one
/// expression, whose temporaries live to its end).
inline Value clamp(Value a, Value low, Value high) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  const bool trains = static_cast<bool>(e);
  const Value s = saved(a, trains), sl = saved(low, trains), sh = saved(high, trains);
  Value r = pointwise("clamp.Tensor", t, std::move(a), std::move(low), std::move(high));
  differentiable(r, "ClampBackward0", {e}, [s, sl, sh](Gradients& g) {
    Value zero = fill(s.builder(), "scalar_tensor", Shape{}, g.in[0].dtype());
    const Value above = compare("ge.Tensor", s, sl), below = compare("le.Tensor", s, sh);
    const Value inside = pointwise("logical_and", DType::boolean, above, below);
    g.out[0] = where(inside, g.in[0], std::move(zero));
  });
  return r;
}

/// tensor.max(dim=-1, keepdim).values: the places are a result too, which is dropped but for a backward.
inline Value max_values(Value a, bool keep = true) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s = reduced(a.shape(), -1, keep);
  const ReductionScratch split = reduction_scratch(a.tensor(), -1, 16, b.gpu);
  const std::array<TensorId, 2> outs{b.result(t, s, "max"), b.result(DType::int64, s, "max_indices")};
  const std::array<TensorId, 1> ins{a.id()};
  const MemoryOp op{.read = data_bytes(a),
                    .written = size_of(numel(s), t) + size_of(numel(s), DType::int64),
                    .workspace = split.partial + split.semaphores,
                    .dtype = t,
                    .access = Access::reduction,
                    .elements = numel(a.shape())};
  b.emit("max.dim", op, ins, outs, {split.partial, split.semaphores});
  Value values(b, outs[0]);
  const Value places(b, outs[1]);
  const GradEdge e = edge(a);
  differentiable(values, "MaxBackward0", {e},
                 [at = saved(places, static_cast<bool>(e)), whole = e.shape](Gradients& g) {
                   g.out[0] = scatter_backward(g.in[0], at, whole);
                 });
  return values;
}

/// tensor.amax(dim). Backward: equal maxima share the gradient (FunctionsManual.cpp, scale_grad_by_count).
inline Value amax(Value a, int dim) {
  const DType t = a.dtype();
  const Shape s = reduced(a.shape(), dim, false);
  const ReductionScratch split = reduction_scratch(a.tensor(), dim, is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  const GradEdge e = edge(a);
  const Value of = saved(a, static_cast<bool>(e));
  Value r = reduce("amax", t, s, std::move(a), {}, 1, split);
  differentiable(r, "AmaxBackward0", {e}, [of, kept = saved_result(r, static_cast<bool>(e)), dim](Gradients& g) {
    const Value largest = compare("eq.Tensor", unsqueeze(kept, dim), of);
    Value part = mul(unsqueeze(g.in[0], dim), largest);
    g.out[0] = div(std::move(part), sum(largest, dim, true));
  });
  return r;
}

/// self.gather(1, index) of [rows, n] by int64[rows, k].
inline Value gather_columns(Value self, Value index) {
  Builder& b = self.builder();
  const DType t = self.dtype();
  const Shape s = index.shape();
  const Bytes moved = size_of(numel(s), t);
  const GradEdge e = edge(self);
  const Value at = saved(index, static_cast<bool>(e));
  const TensorId r = b.result(t, s, "gather");
  Value out =
      emit1(b, "gather", MemoryOp{.read = moved + data_bytes(index), .written = moved, .dtype = t}, r, {}, self, index);
  differentiable(out, "GatherBackward0", {e},
                 [at, whole = e.shape](Gradients& g) { g.out[0] = gather_backward(g.in[0], at, whole); });
  return out;
}

/// self.scatter_(1, index, source) of [rows, n] by int64[rows, k], self having no history: the source's gradient is
/// gathered where it went (tools/autograd/derivatives.yaml).
inline Value scatter_columns_(Value self, Value index, Value source) {
  const Bytes moved = data_bytes(source), places = data_bytes(index);
  const GradEdge e = edge(source);
  const Value at = saved(index, static_cast<bool>(e));
  Builder& b = self.builder();
  const MemoryOp op{.read = moved + places, .written = moved, .dtype = self.dtype()};
  Value r = emit_inplace(b, "scatter_.src", op, {}, self, index, source);
  differentiable(r, "ScatterBackward0", {e}, [at](Gradients& g) { g.out[0] = gather_columns(g.in[0], at); });
  return r;
}

/// base[..., begin:end].copy_(source), base being a tensor of its own. Backward: torch's CopySlices
/// (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied whole, the part copied once more goes to the
/// source, and zeros take its place where the base has a history.
inline Value copy_into(Value base, std::int64_t begin, std::int64_t end, Value source) {
  const GradEdge eb = edge(base), es = edge(source);
  Builder& b = base.builder();
  {
    NoGrad view(b);
    pointwise_("copy_", slice(base, -1, begin, end), std::move(source));
  }
  if (!eb && !es) return base;
  Value r = b.view(base, base.shape(), base.tensor().strides);
  differentiable(r, "CopySlices", {eb, es}, [begin, end](Gradients& g) {
    Builder& at = g.in[0].builder();
    Value whole = empty(at, "new_empty_strided", g.in[0].shape(), g.in[0].dtype());
    copy_(whole, g.in[0]);
    const Value part = slice(whole, -1, begin, end);
    Value fresh = clone(part);
    if (g.wants(0)) {
      Value zeros = fill(at, "zeros_like", fresh.shape(), fresh.dtype());
      if (g.wants(1)) g.out[1] = std::move(fresh);
      copy_(part, std::move(zeros));
      g.out[0] = std::move(whole);
    } else if (g.wants(1)) {
      g.out[1] = std::move(fresh);
    }
  });
  return r;
}

}  // namespace vlmest::eager
