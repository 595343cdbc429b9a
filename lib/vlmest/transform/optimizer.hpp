// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/plan/plan.hpp>
#include <vlmest/transform/backward.hpp>

namespace vlmest {

/// One trained parameter: its tensor and the states that the optimizer keeps for it.
struct TrainedParameter {
  TensorId weight = none;
  std::vector<TensorId> states;
};


/// The states that the first step makes for a parameter, in the order in which the optimizer allocates them; sizes as in
/// analysis/optimizer_states.hpp says.
inline std::vector<TensorId> make_states(Builder& b, Optimizer o, TensorId parameter) {
  const Shape shape = b.graph.tensor(parameter).shape;
  const DType t = b.graph.tensor(parameter).dtype;
  const Elements n = numel(shape);
  const auto state = [&](const char* name, DType type, const Shape& s) { return b.persistent(name, Role::optimizer_state, type, s); };
  switch (o) {
    case Optimizer::adamw: return {state("exp_avg", t, shape), state("exp_avg_sq", t, shape)};
    case Optimizer::adamw_fused: return {state("step", DType::fp32, Shape{}), state("exp_avg", t, shape), state("exp_avg_sq", t, shape)};
    case Optimizer::adamw_8bit: {
      if (n < Elements(4096)) return {state("state1", DType::fp32, shape), state("state2", DType::fp32, shape)};
      const Shape blocks{(n.value() + 255) / 256};
      return {state("state1", DType::uint8, shape), state("absmax1", DType::fp32, blocks), state("state2", DType::uint8, shape),
              state("absmax2", DType::fp32, blocks)};
    }
    case Optimizer::sgd: return {};
    case Optimizer::sgd_momentum: return {state("momentum_buffer", t, shape)};
    case Optimizer::adafactor: {
      if (shape.rank() < 2) return {state("exp_avg_sq", DType::fp32, shape)};
      Shape row = shape, column = shape;
      row.erase(row.rank() - 1);
      column.erase(column.rank() - 2);
      return {state("exp_avg_sq_row", DType::fp32, row), state("exp_avg_sq_col", DType::fp32, column)};
    }
  }
  return {};
}

/// A foreach op over all parameters: one node that reads and writes `moved` bytes, with fresh results where `results`.
inline void foreach_op(Builder& b, const char* name, Bytes moved, std::span<const TensorId> results = {}) {
  b.emit(name, MemoryOp{.read = moved, .written = moved, .kernels = 1}, {}, results);
}

/// torch/optim/adam.py, _multi_tensor_adam with decoupled weight decay (AdamW's default): every step works on all
/// parameters at once, so the square roots of all second moments are alive together.
inline void adamw_step(Builder& b, const std::vector<TrainedParameter>& parameters) {
  Bytes size{};
  for (const auto& p : parameters) size += requested_bytes(b.graph.tensor(p.weight));
  foreach_op(b, "_foreach_mul_.Scalar", size);
  foreach_op(b, "_foreach_lerp_.Scalar", size);
  foreach_op(b, "_foreach_mul_.Scalar", size);
  foreach_op(b, "_foreach_addcmul_.Scalar", size);
  std::vector<TensorId> roots;
  for (const auto& p : parameters) {
    const Tensor& w = b.graph.tensor(p.weight);
    const Shape s = w.shape;
    const DType t = w.dtype;
    roots.push_back(b.result(t, s, "square root of the second moment"));
  }
  foreach_op(b, "_foreach_sqrt", size, roots);
  std::vector<Value> held;
  for (TensorId r : roots) held.emplace_back(b, r);
  foreach_op(b, "_foreach_div_.ScalarList", size);
  foreach_op(b, "_foreach_add_.Scalar", size);
  foreach_op(b, "_foreach_addcdiv_.ScalarList", size);
}

}  // namespace vlmest
