// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/graph/eager/result_layout.hpp>

/// Element-wise ops: one kernel that reads every operand at its own size and writes one result
/// (aten/src/ATen/TensorIterator.cpp decides its shape and layout).
namespace vlmest::eager {

/// Kernels of one, none over nothing: offsets are 32-bit, so that larger operands are halved until each piece's fit
/// (TensorIterator.cpp, with_32bit_indexing). Throws Overflow where they cannot be counted.
constexpr int pieces(Bytes largest) {
  int n = largest > Bytes{} ? 1 : 0;
  for (std::int64_t bytes = largest.value(); bytes > std::int64_t{1} << 31; bytes -= bytes / 2) {
    if (n > INT32_MAX / 2) throw Overflow{};
    n *= 2;
  }
  return n;
}

/// How the kernel of an element-wise op walks: its operands collapse to one dimension where each is laid out as the
/// result is, without gaps (TensorIterator.cpp, coalesce_dimensions; CUDALoops.cuh, gpu_kernel_impl). Conditions and
/// results of comparisons are booleans beside the one type that it computes in; fp32 is narrowed to a half type by a
/// kernel made for it (Copy.cu, bfloat16_copy_kernel_cuda).
template <class... In>
Access access(const Shape& s, const Shape& strides, DType out, const In&... in) {
  std::int64_t span = 1;
  int fastest = -1;
  for (int i = 0; i < s.rank(); ++i) {
    span += (s[i] - 1) * strides[i];
    if (s[i] > 1 && (fastest < 0 || strides[i] < strides[fastest])) fastest = i;
  }
  bool alike = span == numel(s).value(), transposed = false;
  const auto look = [&](const Value& v) {
    const Tensor& t = v.tensor();
    alike = alike && v.shape() == s;
    const int first = s.rank() - v.shape().rank();  // of the result's dimensions that the operand has
    for (int i = first; i < s.rank() && alike; ++i) alike = s[i] == 1 || t.strides[i - first] == strides[i];
    if (fastest >= first && v.size(fastest - first) > 1) transposed = transposed || t.strides[fastest - first] > 1;
  };
  (look(in), ...);
  if (!alike) return transposed ? Access::transposed : Access::strided;
  const auto differs = [](DType a, DType b) { return a != b && a != DType::boolean && b != DType::boolean; };
  const std::array<DType, sizeof...(In)> types{in.dtype()...};
  if (types.size() == 1 && types[0] == DType::fp32 && is_half(out)) return Access::contiguous;
  for (const DType t : types)
    if (differs(t, out) || differs(t, types.back())) return Access::cast;
  return Access::contiguous;
}

/// result = aten(in...) in type `out`; Python scalars among the arguments are not tensors and are not passed.
template <class... In>
Value pointwise(AtenOp aten, DType out, Value first, In... rest) {
  Shape s = first.shape();
  ((s = broadcast(s, rest.shape())), ...);
  Bytes read = data_bytes(first);
  ((read += data_bytes(rest)), ...);
  Builder& b = first.builder();
  const Shape strides = result_strides(s, first, rest...);
  const TensorId r = b.result(out, s, strides, aten.name);
  const Bytes written = size_of(numel(s), out);
  Bytes largest = std::max(written, data_bytes(first));
  ((largest = std::max(largest, data_bytes(rest))), ...);
  MemoryOp op{.read = read,
              .written = written,
              .dtype = out,
              .kernels = pieces(largest),
              .access = access(s, strides, out, first, rest...),
              .elements = numel(s)};
  if (op.access == Access::contiguous && aten.trait == AtenTrait::function) op.access = Access::functions;
  return emit1(b, aten, op, r, {}, first, rest...);
}
/// The same into the first argument.
template <class... In>
Value pointwise_(AtenOp aten, Value self, In... rest) {
  Bytes read = data_bytes(self);
  ((read += data_bytes(rest)), ...);
  const Bytes written = data_bytes(self);
  const DType t = self.dtype();
  Builder& b = self.builder();
  Bytes largest = written;
  ((largest = std::max(largest, data_bytes(rest))), ...);
  const MemoryOp op{.read = read,
                    .written = written,
                    .dtype = t,
                    .kernels = pieces(largest),
                    .access = access(self.shape(), self.tensor().strides, t, self, rest...),
                    .elements = numel(self.shape())};
  return emit_inplace(b, aten, op, {}, self, rest...);
}

/// Result type of arithmetic between two tensors (c10/core/ScalarType.h, promoteTypes, for the types that occur here).
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  auto rank = [](DType t) {
    switch (t) {
      case DType::boolean: return 0;
      case DType::uint8:
      case DType::int8: return 1;
      case DType::int32: return 2;
      case DType::int64: return 3;
      case DType::fp16:
      case DType::bf16: return 4;
      case DType::fp32: return 5;
      case DType::fp64: return 6;
      case DType::complex64: return 7;
      default: return 8;
    }
  };
  return rank(a) >= rank(b) ? a : b;
}
/// A tensor of no dimensions does not raise the type of one that has them, within a category.
inline DType promote(const Value& a, const Value& b) {
  if (a.shape().rank() == 0 && b.shape().rank() > 0) return b.dtype();
  if (b.shape().rank() == 0 && a.shape().rank() > 0) return a.dtype();
  return promote(a.dtype(), b.dtype());
}

Value neg(Value a);  // unary.hpp
inline Value mul(Value a, Value b);
inline Value div(Value a, Value b);

inline Value add(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  Value r = pointwise("add.Tensor", t, std::move(a), std::move(b));
  differentiable(r, "AddBackward0", {ea, eb}, [](Gradients& g) {
    if (g.wants(1)) g.out[1] = g.in[0];
    if (g.wants(0)) g.out[0] = g.in[0];
  });
  return r;
}
/// torch.add(a, b, alpha=number).
inline Value add_scaled(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  Value r = pointwise("add.Tensor", t, std::move(a), std::move(b));
  differentiable(r, "AddBackward0", {ea, eb}, [t](Gradients& g) {
    if (g.wants(1)) g.out[1] = pointwise("mul.Tensor", t, g.in[0]);
    if (g.wants(0)) g.out[0] = g.in[0];
  });
  return r;
}
inline Value add_scalar(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("add.Tensor", t, std::move(a));
  differentiable(r, "AddBackward0", {e}, [](Gradients& g) { g.out[0] = std::move(g.in[0]); });
  return r;
}
inline Value sub(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  Value r = pointwise("sub.Tensor", t, std::move(a), std::move(b));
  differentiable(r, "SubBackward0", {ea, eb}, [](Gradients& g) {
    if (g.wants(1)) g.out[1] = neg(g.in[0]);
    if (g.wants(0)) g.out[0] = g.in[0];
  });
  return r;
}
inline Value sub_scalar(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("sub.Tensor", t, std::move(a));
  differentiable(r, "SubBackward0", {e}, [](Gradients& g) { g.out[0] = std::move(g.in[0]); });
  return r;
}
/// conj() of a complex operand, which the op that reads it writes out first (aten/src/ATen/native/MathBitsFallback.h);
/// other operands are taken as they are.
inline Value conjugate(const Value& v) { return is_complex(v.dtype()) ? pointwise("clone", v.dtype(), v) : v; }
/// FunctionsManual.cpp, mul_tensor_backward.
inline Value mul(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, static_cast<bool>(ea));
  Value r = pointwise("mul.Tensor", t, std::move(a), std::move(b));
  differentiable(r, "MulBackward0", {ea, eb}, [sa, sb](Gradients& g) {
    if (g.wants(1)) g.out[1] = mul(g.in[0], conjugate(sa));
    if (g.wants(0)) g.out[0] = mul(g.in[0], conjugate(sb));
  });
  return r;
}
inline Value mul_scalar(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("mul.Tensor", t, std::move(a));
  differentiable(r, "MulBackward0", {e}, [t](Gradients& g) { g.out[0] = pointwise("mul.Tensor", t, g.in[0]); });
  return r;
}
/// FunctionsManual.cpp, div_tensor_other_grad: one expression, whose temporaries live to its end.
inline void div_backward(Gradients& g, const Value& a, const Value& b) {
  if (g.wants(1)) {
    Value quotient = div(a, b);
    Value twice = div(quotient, b);
    Value negative = neg(g.in[0]);
    g.out[1] = mul(negative, twice);
  }
  if (g.wants(0)) g.out[0] = div(g.in[0], b);
}
inline Value div(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, ea || eb);
  Value r = pointwise("div.Tensor", t, std::move(a), std::move(b));
  differentiable(r, "DivBackward0", {ea, eb}, [sa, sb](Gradients& g) { div_backward(g, sa, sb); });
  return r;
}
inline Value div_scalar(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("div.Tensor", t, std::move(a));
  differentiable(r, "DivBackward0", {e}, [t](Gradients& g) { g.out[0] = pointwise("div.Tensor", t, g.in[0]); });
  return r;
}
/// a += b.
inline constexpr AtenOp accumulate{"add_.Tensor", AtenTrait::accumulation};
inline Value add_(Value a, Value b) {
  const GradEdge ea = edge(a), eb = edge(b);
  Value r = pointwise_(accumulate, std::move(a), std::move(b));
  differentiable(r, "AddBackward0", {ea, eb}, [](Gradients& g) {
    if (g.wants(1)) g.out[1] = g.in[0];
    if (g.wants(0)) g.out[0] = std::move(g.in[0]);
  });
  return r;
}
/// a *= b, b being no operand of the history.
inline Value mul_(Value self, Value b) {
  const GradEdge e = edge(self);
  const Value sb = saved(b, static_cast<bool>(e));
  Value r = pointwise_("mul_.Tensor", std::move(self), std::move(b));
  differentiable(r, "MulBackward0", {e}, [sb](Gradients& g) { g.out[0] = mul(g.in[0], sb); });
  return r;
}

/// a *= number.
inline Value scale_(Value a) {
  const GradEdge e = edge(a);
  const DType t = a.dtype();
  Value r = pointwise_("mul_.Tensor", std::move(a));
  differentiable(r, "MulBackward0", {e}, [t](Gradients& g) { g.out[0] = pointwise("mul.Tensor", t, g.in[0]); });
  return r;
}

/// Comparisons and logic give booleans.
inline Value compare(const char* name, Value a, Value b) {
  return pointwise(name, DType::boolean, std::move(a), std::move(b));
}
inline Value compare_scalar(const char* name, Value a) { return pointwise(name, DType::boolean, std::move(a)); }
Value fill(Builder& b, const char* name, const Shape& s, DType t);  // data.hpp
/// The gradient goes where its operand was taken from; a zero on the device fills the rest.
inline Value where(Value condition, Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge ea = edge(a), eb = edge(b);
  const Value chosen = saved(condition, ea || eb);
  Value r = pointwise("where.self", t, std::move(condition), std::move(a), std::move(b));
  differentiable(r, "WhereBackward0", {ea, eb}, [chosen](Gradients& g) {
    const auto part = [&](bool first) {
      Value zero = fill(chosen.builder(), "scalar_tensor", Shape{}, g.in[0].dtype());
      return first ? where(chosen, g.in[0], std::move(zero)) : where(chosen, std::move(zero), g.in[0]);
    };
    if (g.wants(1)) g.out[1] = part(false);
    if (g.wants(0)) g.out[0] = part(true);
  });
  return r;
}

}  // namespace vlmest::eager
