// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/reduce.hpp>

/// Standard deviations, roots and the larger of two, as autograd follows them (tools/autograd/derivatives.yaml,
/// torch/csrc/autograd/FunctionsManual.cpp).
namespace vlmest::eager {

/// torch.sqrt: gradient / (2 * result).
inline Value square_root(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("sqrt", t, std::move(a));
  differentiable(r, "SqrtBackward0", {e}, [s = saved_result(r, static_cast<bool>(e))](Gradients& g) {
    const DType u = g.in[0].dtype();
    const Value twice = pointwise("mul.Scalar", u, s);
    g.out[0] = pointwise("div.Tensor", u, g.in[0], twice);
  });
  return r;
}

/// torch.maximum(a, b) of which b needs no gradient: half of it goes to a where both are equal, none where b is larger
/// (one expression, whose temporaries live to its end).
inline Value maximum(Value a, Value b) {
  const DType t = promote(a, b);
  const GradEdge e = edge(a);
  const Value sa = saved(a, static_cast<bool>(e)), sb = saved(b, static_cast<bool>(e));
  Value r = pointwise("maximum", t, std::move(a), std::move(b));
  differentiable(r, "MaximumBackward0", {e}, [sa, sb](Gradients& g) {
    const Value half = pointwise("div.Scalar", g.in[0].dtype(), g.in[0]);
    const Value equal = compare("eq.Tensor", sa, sb);
    Value shared = pointwise("where.self", g.in[0].dtype(), equal, half, g.in[0]);
    const Value below = compare("lt.Tensor", sa, sb);
    g.out[0] = pointwise_("masked_fill_.Scalar", std::move(shared), below);
  });
  return r;
}

/// torch.std(a, dim=-1, keepdim=True, unbiased=False). Its kernel's accumulators hold a mean, a sum of squares, a count
/// of 4 bytes and one of 4 bytes as fp32 (aten/src/ATen/native/SharedReduceOps.h, WelfordData).
inline Value standard_deviation(Value a) {
  const Shape s = reduced(a.shape(), -1, true);
  const DType t = a.dtype();
  const ReductionScratch split = reduction_scratch(a.tensor(), -1, 16, a.builder().gpu);
  const GradEdge e = edge(a);
  const Value x = saved(a, static_cast<bool>(e));
  Value r = reduce("std.correction", t, s, std::move(a), {}, 1, split);
  differentiable(r, "StdBackward0", {e}, [x, s = saved_result(r, static_cast<bool>(e))](Gradients& g) {
    const DType u = g.in[0].dtype();
    Value of_variance;
    {
      const Value twice = pointwise("mul.Scalar", u, s);
      Value quotient = pointwise("div.Tensor", u, g.in[0], twice);
      const Value zero = compare_scalar("eq.Scalar", s);
      of_variance = pointwise_("masked_fill_.Scalar", std::move(quotient), zero);
    }
    const Value center = mean(x, -1, true);
    const Value apart = pointwise("sub.Tensor", u, x, center);
    const Value scaled = pointwise("mul.Scalar", u, of_variance);
    g.out[0] = pointwise("mul.Tensor", u, scaled, apart);
  });
  return r;
}

}  // namespace vlmest::eager
