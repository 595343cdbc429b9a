// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>
#include <vlmest/transform/backward.hpp>

namespace vlmest {

/// One trained parameter: its tensor and the states that the optimizer keeps for it.
struct TrainedParameter {
  TensorId weight = none;
  std::vector<TensorId> states;
};


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
