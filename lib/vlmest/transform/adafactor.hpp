// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>

#include <vlmest/graph/engine.hpp>

namespace vlmest {

/// The tensors that an optimizer keeps for one parameter: up to four.
struct OptimizerStates {
  std::array<TensorId, 4> tensors{};
  std::size_t count = 0;

  OptimizerStates() = default;
  OptimizerStates(std::initializer_list<TensorId> list) {
    for (const TensorId t : list) tensors.at(count++) = t;
  }
  const TensorId* begin() const { return tensors.data(); }
  const TensorId* end() const { return tensors.data() + count; }
  TensorId operator[](std::size_t i) const { return tensors[i]; }
};

/// One trained parameter: its tensor and the states that the optimizer keeps for it.
struct TrainedParameter {
  TensorId weight = none;
  OptimizerStates states;
};

/// x.norm(2) / sqrt(n) (transformers 5.17 optimization.py, Adafactor._rms).
inline Value root_mean_square(const Value& x) {
  using namespace eager;
  const DType t = x.dtype();
  Value norm = reduce("linalg_vector_norm", t, Shape{}, x, {}, 1, full_reduction_scratch(numel(x.shape()).value(), 4));
  return div_scalar(std::move(norm));
}

/// transformers 5.17 optimization.py, Adafactor.step, with a given learning rate (scale_parameter and relative_step
/// off, as its Trainer sets them), neither first moment nor weight decay: parameter by parameter in fp32, so that half
/// parameters and their gradients are cast first. The locals of one parameter stay until the next one rebinds them.
inline void adafactor_step(Builder& b, std::span<const TrainedParameter> parameters, ParameterGradients& gradients) {
  using namespace eager;
  Value grad, data, update, row, column;
  for (const auto& p : parameters) {
    Value parameter(b, p.weight);
    grad = gradients.of(p.weight);
    grad = to(grad, DType::fp32);
    data = parameter;
    data = to(data, DType::fp32);
    root_mean_square(data);  // takes the place of the one that was kept
    update = add_scalar(pow_scalar(grad));
    if (parameter.shape().rank() >= 2) {
      row = Value(b, p.states[0]);
      column = Value(b, p.states[1]);
      pointwise_("mul_.Tensor", row);
      Value mean_of_row = mean(update, -1, false);
      add_(row, std::move(mean_of_row));
      pointwise_("mul_.Tensor", column);
      Value mean_of_column = mean(update, -2, false);
      add_(column, std::move(mean_of_column));
      Value whole = mean(row, -1, true);
      Value quotient = div(row, std::move(whole));
      // Adafactor._approx_sq_grad, whose locals go when it has returned.
      Value row_factor = unsqueeze(pointwise_("rsqrt_", std::move(quotient)), -1);
      Value column_factor = rsqrt(unsqueeze(column, -2));
      Value product = mul(row_factor, column_factor);
      update = std::move(product);
      row_factor.reset();
      column_factor.reset();
      pointwise_("mul_.Tensor", update, grad);
    } else {
      Value state(b, p.states[0]);
      pointwise_("mul_.Tensor", state);
      add_(state, update);
      Value root = rsqrt(state);
      update = mul_(std::move(root), grad);
    }
    Value limit = div_scalar(root_mean_square(update));
    limit = pointwise_("clamp_", std::move(limit));
    pointwise_("div_.Tensor", update, std::move(limit));
    pointwise_("mul_.Tensor", update);
    Value step = neg(update);
    add_(data, std::move(step));
    if (parameter.dtype() != DType::fp32) copy_(parameter, data);
  }
}

}  // namespace vlmest
