// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/plan/plan.hpp>
#include <vlmest/transform/adafactor.hpp>
#include <vlmest/transform/foreach.hpp>

namespace vlmest {

inline bool is_embedding(const Graph& g, TensorId parameter) {
  return std::find(g.embeddings.begin(), g.embeddings.end(), parameter) != g.embeddings.end();
}

/// The states that the first step makes for a parameter, in the order in which the optimizer allocates them, of the
/// parameter's type where not said otherwise.
/// - adamw: two moments; the step count lives on the host (torch/optim/adamw.py, _init_group).
/// - adamw_fused: two moments and an fp32 step count.
/// - adamw_8bit: two moments of one byte an element with an fp32 scale for every 256 of them; parameters of fewer than
///   4,096 elements keep two fp32 moments (bitsandbytes, optim/optimizer.py, init_state). The two code books that all
///   parameters share, 2 KiB, are left out.
/// - adamw_bnb_8bit: the same, but embeddings keep two fp32 moments (transformers/trainer.py, create_optimizer).
/// - sgd: nothing; sgd_momentum: one buffer.
/// - adafactor: a row and a column of the last two dimensions, or one vector, and the root mean square, in fp32
///   (transformers/optimization.py, Adafactor.step).
inline OptimizerStates make_states(Builder& b, Optimizer o, TensorId parameter) {
  const Shape shape = b.graph.tensor(parameter).shape;
  const DType t = b.graph.tensor(parameter).dtype;
  const Elements n = numel(shape);
  const auto state = [&](const char* name, DType type, const Shape& s) {
    return b.persistent(name, Role::optimizer_state, type, s);
  };
  switch (o) {
    case Optimizer::adamw: return {state("exp_avg", t, shape), state("exp_avg_sq", t, shape)};
    case Optimizer::adamw_fused:
      return {state("step", DType::fp32, Shape{}), state("exp_avg", t, shape), state("exp_avg_sq", t, shape)};
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_bnb_8bit: {
      if (keeps_fp32_moments(o, n.value(), is_embedding(b.graph, parameter)))
        return {state("state1", DType::fp32, shape), state("state2", DType::fp32, shape)};
      const Shape blocks{(n.value() + 255) / 256};
      return {state("state1", DType::uint8, shape), state("state2", DType::uint8, shape),
              state("absmax1", DType::fp32, blocks), state("absmax2", DType::fp32, blocks)};
    }
    case Optimizer::sgd: return {};
    case Optimizer::sgd_momentum: return {state("momentum_buffer", t, shape)};
    case Optimizer::adafactor: {
      if (shape.rank() < 2) return {state("exp_avg_sq", DType::fp32, shape), state("RMS", DType::fp32, Shape{})};
      Shape row = shape, column = shape;
      row.erase(row.rank() - 1);
      column.erase(column.rank() - 2);
      return {state("exp_avg_sq_row", DType::fp32, row), state("exp_avg_sq_col", DType::fp32, column),
              state("RMS", DType::fp32, Shape{})};
    }
  }
  return {};
}

inline TensorList tensor_list(const Builder& b, std::span<const TrainedParameter> parameters) {
  TensorList r;
  r.sizes.reserve(parameters.size());
  for (const auto& p : parameters) {
    const Tensor& t = b.graph.tensor(p.weight);
    r.sizes.push_back(t.storage);
    r.bytes += requested_bytes(t);
  }
  return r;
}

/// The parameters by element type, as foreach implementations take them one group after the other
/// (torch/utils/_foreach_utils.py, _group_tensors_by_device_and_dtype): the groups come out of a hash map, the one
/// found last first.
inline std::vector<std::vector<TrainedParameter>> groups_by_type(const Builder& b,
                                                                 std::span<const TrainedParameter> parameters) {
  std::vector<std::vector<TrainedParameter>> groups;
  for (const auto& p : parameters) {
    const DType t = b.graph.tensor(p.weight).dtype;
    const auto of = std::find_if(groups.begin(), groups.end(),
                                 [&](const auto& g) { return b.graph.tensor(g.front().weight).dtype == t; });
    if (of != groups.end())
      of->push_back(p);
    else
      groups.insert(groups.begin(), {p});
  }
  return groups;
}

/// torch/optim/adam.py, _multi_tensor_adam with decoupled weight decay (AdamW's default), for one group: every op works
/// on all parameters at once, so the square roots of all second moments are alive together, as a variable until the
/// next group's are there.
inline void adamw_step(Builder& b, std::span<const TrainedParameter> parameters, std::vector<Value>& held) {
  const TensorList l = tensor_list(b, parameters);
  foreach_op(b, "_foreach_mul_.Scalar", l, 1, 1, 1);
  foreach_op(b, "_foreach_lerp_.Scalar", l, 2, 1, 2);
  foreach_op(b, "_foreach_mul_.Scalar", l, 1, 1, 1);
  foreach_op(b, "_foreach_addcmul_.Scalar", l, 2, 1, 3);
  std::vector<TensorId> roots;
  roots.reserve(parameters.size());
  for (const auto& p : parameters) {
    const Shape s = b.graph.tensor(p.weight).shape;
    const DType t = b.graph.tensor(p.weight).dtype;
    roots.push_back(b.result(t, s, "square root of the second moment"));
    b.graph.tensors.back().of = p.weight;
  }
  foreach_op(b, "_foreach_sqrt", l, 1, 1, 2, false, roots);
  std::vector<Value> fresh;
  fresh.reserve(roots.size());
  for (TensorId r : roots) fresh.emplace_back(b, r);
  held = std::move(fresh);
  foreach_op(b, "_foreach_div_.ScalarList", l, 1, 1, 1, true);
  foreach_op(b, "_foreach_add_.Scalar", l, 1, 1, 1);
  foreach_op(b, "_foreach_addcdiv_.ScalarList", l, 3, 1, 3, true);
}

/// torch/optim/adam.py, _fused_adam: the step counts, then one op that reads parameters, gradients and moments and
/// writes all but the gradients.
inline void adamw_fused_step(Builder& b, std::span<const TrainedParameter> parameters) {
  const TensorList l = tensor_list(b, parameters);
  const TensorList counts{std::vector<Elements>(parameters.size(), Elements(1)),
                          size_of(Elements(static_cast<std::int64_t>(parameters.size())), DType::fp32)};
  foreach_op(b, "_foreach_add_.Scalar", counts, 1, 1, 1);
  foreach_op(b, "_fused_adamw_", l, 4, 3, 4);
}

/// bitsandbytes, optim/optimizer.py, Optimizer2State.update_step: one kernel for each parameter, in blocks of 256
/// elements with a scale of their own, or in fp32 for small ones. The host waits for each (Optimizer8bit.step).
inline void adamw_8bit_step(Builder& b, std::span<const TrainedParameter> parameters) {
  for (const auto& p : parameters) {
    const Bytes weight = requested_bytes(b.graph.tensor(p.weight));
    Bytes states{};
    std::vector<TensorId> in{p.weight};
    for (TensorId s : p.states) {
      states += requested_bytes(b.graph.tensor(s));
      in.push_back(s);
    }
    const bool blocks = b.graph.tensor(p.states[0]).dtype == DType::uint8;
    const std::array<TensorId, 1> out{p.weight};
    b.emit(blocks ? "optimizer_update_8bit_blockwise" : "optimizer_update_32bit",
           MemoryOp{.read = weight * 2 + states, .written = weight + states}, in, out);
    b.emit("synchronize", HostSync{}, {}, {});
  }
}

/// torch/optim/sgd.py, _multi_tensor_sgd without weight decay.
inline void sgd_step(Builder& b, std::span<const TrainedParameter> parameters, bool momentum) {
  const TensorList l = tensor_list(b, parameters);
  if (momentum) {
    foreach_op(b, "_foreach_mul_.Scalar", l, 1, 1, 1);
    foreach_op(b, "_foreach_add_.List", l, 2, 1, 2);
  }
  foreach_op(b, "_foreach_add_.List", l, 2, 1, 2);
}

/// Notes which parameter each gradient and state belongs to.
inline void mark_owners(Builder& b, std::span<const TrainedParameter> parameters, ParameterGradients& gradients) {
  const auto belongs = [&](TensorId t, TensorId parameter) {
    b.graph.tensors[static_cast<std::size_t>(b.graph.owner(t))].of = parameter;
  };
  for (const auto& p : parameters) {
    if (const Value& g = gradients.of(p.weight)) belongs(g.id(), p.weight);
    for (const TensorId s : p.states) belongs(s, p.weight);
  }
}

/// The parameters of a torch optimizer in the lists that it works on. Its foreach ops take no list that has both
/// DTensors and plain tensors (torch/distributed/tensor/_dispatch.py), so that a script that trains a divided model
/// makes a group of each.
inline std::vector<std::vector<TrainedParameter>> optimizer_groups(const Graph& g, std::vector<TrainedParameter> all) {
  std::vector<std::vector<TrainedParameter>> r;
  if (g.sharded.empty()) {
    r.push_back(std::move(all));
    return r;
  }
  r.resize(2);
  for (TrainedParameter& p : all) {
    const bool parts =
        std::any_of(g.sharded.begin(), g.sharded.end(), [&](const ShardedWeight& w) { return w.weight == p.weight; });
    r[parts ? 0 : 1].push_back(std::move(p));
  }
  return r;
}

/// One step of the optimizer over all trained parameters.
inline void optimizer_step(Builder& b, Optimizer o, std::span<const TrainedParameter> parameters,
                           ParameterGradients& gradients) {
  if (parameters.empty()) return;
  mark_owners(b, parameters, gradients);
  std::vector<Value> roots;
  const auto each = [&](auto&& step) {
    for (const auto& g : groups_by_type(b, parameters)) step(g);
  };
  switch (o) {
    case Optimizer::adamw: return each([&](const auto& g) { adamw_step(b, g, roots); });
    case Optimizer::adamw_fused: return each([&](const auto& g) { adamw_fused_step(b, g); });
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_bnb_8bit: return adamw_8bit_step(b, parameters);
    case Optimizer::sgd: return each([&](const auto& g) { sgd_step(b, g, false); });
    case Optimizer::sgd_momentum: return each([&](const auto& g) { sgd_step(b, g, true); });
    case Optimizer::adafactor: return adafactor_step(b, parameters, gradients);
  }
}

}  // namespace vlmest
