// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>

#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/nn/quantization/stored.hpp>

/// Inputs of unpacked layers, rounded to what their scheme allows and wide again.
namespace vlmest {

/// The type of a stored weight's activations; none: they are not quantised.
inline std::optional<DType> rounded_type(const WeightStorage& how) {
  return std::visit(
      [](const auto& w) -> std::optional<DType> {
        if constexpr (requires { w.activations; }) return w.activations;
        return std::nullopt;
      },
      how);
}

/// compressed-tensors 0.16: a module that was unpacked rounds its inputs at every forward (quantization/lifecycle/
/// forward.py, set_forward_quantized; forward_helpers.py, _quantize_dequantize). The scale of each row is found first
/// (quantization/utils/helpers.py, compute_dynamic_scales_and_zp; its ops on single columns are shown as few), and its
/// zero point is added and subtracted though it is zero. Four values as wide as x are held at the end: the scaled, the
/// rounded, the one without zero point, and the product.
inline Value rounded_inputs(const Value& x, DType t) {
  using namespace eager;
  Builder& b = x.builder();
  const DType wide = x.dtype();
  const Shape rows = reduced(x.shape(), -1, true);
  Value scale, zero;
  {
    Value least = reduce("amin", wide, rows, x), most = reduce("amax", wide, rows, x);
    most = pointwise("maximum", wide, std::move(least), std::move(most));
    scale = pointwise("div.Scalar", wide, std::move(most));
    zero = fill(b, "zeros", rows, wide);
    zero = to(std::move(zero), t);
  }
  const Value scaled = pointwise_(accumulate, pointwise("div.Tensor", wide, x, scale), to(zero, wide));
  Value rounded;
  {
    Value limited = pointwise("clamp", wide, scaled);
    if (t == DType::fp8)
      rounded = to(to(std::move(limited), t), wide);
    else
      rounded = pointwise("round", wide, std::move(limited));
  }
  const Value centred = pointwise("sub.Tensor", wide, rounded, to(zero, wide));
  return pointwise("mul.Tensor", wide, centred, scale);
}

}  // namespace vlmest
