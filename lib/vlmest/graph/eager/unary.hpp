// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/graph/eager/autocast.hpp>
#include <vlmest/graph/eager/pointwise.hpp>

/// Element-wise functions of one operand.
namespace vlmest::eager {

/// A function of one operand, with the op of two operands that its derivative runs (tools/autograd/derivatives.yaml).
struct Function {
  AtenOp op;
  AtenOp backward{nullptr};  ///< none: the model cannot be trained through it
  bool of_result = false;    ///< the derivative needs the result, not the operand
  constexpr Function(const char* name) : op(name) {}
  constexpr Function(AtenOp forward, AtenOp derivative, bool needs_result = false)
      : op(forward), backward(derivative), of_result(needs_result) {}
};
namespace functions {
inline constexpr Function silu{"silu", "silu_backward"};
inline constexpr Function gelu{{"gelu", AtenTrait::function}, {"gelu_backward", AtenTrait::function}};
inline constexpr Function relu{"relu", "threshold_backward", true};
inline constexpr Function sigmoid{"sigmoid", "sigmoid_backward", true};
inline constexpr Function tanh{{"tanh", AtenTrait::function}, {"tanh_backward", AtenTrait::function}, true};
inline constexpr Function exp{"exp", "mul.Tensor", true};
inline constexpr Function softplus{"softplus", "softplus_backward"};
inline constexpr Function quick_gelu{"quick_gelu", "quick_gelu_backward"};  // one kernel of the fused stack
}  // namespace functions

/// One operand, same type: one of `functions`, or the name of another: "neg", "cos", "floor", "clamp", …
inline Value unary(const Function& f, Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  if (!e) return pointwise(f.op, t, std::move(a));
  if (f.backward.name == nullptr)
    throw Error("autograd", std::string("no derivative of ") + f.op.name,
                "the model cannot be trained through this op yet");
  const Value operand = saved(a, !f.of_result);
  Value r = pointwise(f.op, t, std::move(a));
  const Value result = saved_result(r, f.of_result);
  differentiable(r, f.backward.name, {e}, [backward = f.backward, s = f.of_result ? result : operand](Gradients& g) {
    const DType u = g.in[0].dtype();
    g.out[0] = pointwise(backward, u, g.in[0], s);
  });
  return r;
}
/// relu of a in place.
inline Value relu_(Value a) {
  const GradEdge e = edge(a);
  Value r = pointwise_("relu_", std::move(a));
  const Value result = saved_result(r, static_cast<bool>(e));
  differentiable(r, "ReluBackward0", {e}, [result](Gradients& g) {
    const DType t = g.in[0].dtype();
    g.out[0] = pointwise("threshold_backward", t, g.in[0], result);
  });
  return r;
}
inline Value neg(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("neg", t, std::move(a));
  differentiable(r, "NegBackward0", {e}, [](Gradients& g) { g.out[0] = neg(std::move(g.in[0])); });
  return r;
}
/// number - a.
inline Value rsub_scalar(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("rsub.Scalar", t, std::move(a));
  differentiable(r, "RsubBackward1", {e}, [](Gradients& g) { g.out[0] = neg(std::move(g.in[0])); });
  return r;
}
inline Value cos(Value a) { return unary("cos", std::move(a)); }
inline Value sin(Value a) { return unary("sin", std::move(a)); }
/// -grad / 2 * result^3.
inline Value rsqrt(Value a) {
  const AutocastCall call(CastPolicy::fp32, a);
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("rsqrt", t, std::move(a));
  differentiable(r, "RsqrtBackward0", {e}, [s = saved_result(r, static_cast<bool>(e))](Gradients& g) {
    const DType u = g.in[0].dtype();
    Value cube = pointwise("pow.Tensor_Scalar", u, s);
    Value half = pointwise("mul.Scalar", u, g.in[0]);
    g.out[0] = pointwise("mul.Tensor", u, half, cube);
  });
  return r;
}
/// a ** 2 and other constant powers: grad * (exponent * a ** (exponent - 1)).
inline Value pow_scalar(Value a) {
  const AutocastCall call(CastPolicy::fp32, a);
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  const Value s = saved(a, static_cast<bool>(e));
  Value r = pointwise("pow.Tensor_Scalar", t, std::move(a));
  differentiable(r, "PowBackward0", {e}, [s](Gradients& g) {
    const DType u = g.in[0].dtype();
    Value power = pointwise("pow.Tensor_Scalar", u, s);
    Value slope = pointwise("mul.Scalar", u, power);
    g.out[0] = pointwise("mul.Tensor", u, g.in[0], slope);
  });
  return r;
}
/// number ** exponents: the number is written to the device first, in 8 bytes (aten/src/ATen/native/Pow.cpp,
/// pow_Scalar_out).
inline Value scalar_pow(Value exponents) {
  const AutocastCall call(CastPolicy::fp32, exponents);
  const DType t = exponents.dtype();
  Builder& b = exponents.builder();
  const Bytes n = data_bytes(exponents), number(8);
  const MemoryOp op{.read = n + number,
                    .written = size_of(numel(exponents.shape()), t) + number,
                    .workspace = number,
                    .dtype = t,
                    .kernels = 2};
  return emit1(b, "pow.Scalar", op, b.result(t, exponents.shape(), "pow"), {number}, exponents);
}

/// torch.nn.functional.glu over the last dimension: the first half times the sigmoid of the second.
inline Value glu(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  Shape s = a.shape();
  s[s.rank() - 1] /= 2;
  const GradEdge e = edge(a);
  const Value kept = saved(a, static_cast<bool>(e));
  const Bytes n = data_bytes(a);
  Value r =
      emit1(b, "glu", MemoryOp{.read = n, .written = size_of(numel(s), t), .dtype = t}, b.result(t, s, "glu"), {}, a);
  differentiable(r, "GluBackward0", {e}, [kept](Gradients& g) {
    Builder& at = kept.builder();
    const DType u = g.in[0].dtype();
    Value x = kept;
    const MemoryOp op{.read = data_bytes(x) + data_bytes(g.in[0]), .written = data_bytes(x), .dtype = u};
    g.out[0] = emit1(at, "glu_backward", op, at.result(u, x.shape(), "glu_backward"), {}, g.in[0], x);
  });
  return r;
}

}  // namespace vlmest::eager
