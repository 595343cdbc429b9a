// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/autocast.hpp>
#include <vlmest/graph/eager/pointwise.hpp>

/// Element-wise functions of one operand.
namespace vlmest::eager {

/// How the derivative of a function of one operand is computed.
struct UnaryDerivative {
  const char* name;
  const char* backward;  ///< the op of two operands that runs; null: the gradient passes through
  bool of_result;        ///< it needs the result, not the operand
};
/// tools/autograd/derivatives.yaml.
inline constexpr std::array unary_derivatives{
    UnaryDerivative{"silu", "silu_backward", false},
    UnaryDerivative{"gelu", "gelu_backward", false},
    UnaryDerivative{"relu", "threshold_backward", true},
    UnaryDerivative{"sigmoid", "sigmoid_backward", true},
    UnaryDerivative{"tanh", "tanh_backward", true},
    UnaryDerivative{"exp", "mul.Tensor", true},
    UnaryDerivative{"softplus", "softplus_backward", false},
    UnaryDerivative{"quick_gelu", "quick_gelu_backward", false},  // one kernel of the fused profile
};

/// One operand, same type: "neg", "cos", "sin", "silu", "gelu", "sigmoid", "tanh", "relu", "exp", …
inline Value unary(const char* name, Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  if (!e) return pointwise(name, t, std::move(a));
  for (const auto& d : unary_derivatives)
    if (std::string_view(d.name) == name) {
      const Value operand = saved(a, !d.of_result);
      Value r = pointwise(name, t, std::move(a));
      const Value result = saved_result(r, d.of_result);
      differentiable(r, d.backward, {e}, [d, s = d.of_result ? result : operand](Gradients& g) {
        const DType u = g.in[0].dtype();
        g.out[0] = pointwise(d.backward, u, g.in[0], s);
      });
      return r;
    }
  throw Error("autograd", std::string("no derivative of ") + name, "the model cannot be trained through this op yet");
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

}  // namespace vlmest::eager
