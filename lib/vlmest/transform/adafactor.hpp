// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

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
  Value norm = reduce("linalg_vector_norm", t, Shape{}, x, {}, 1,
                      full_reduction_scratch(numel(x.shape()).value(), 4, x.builder().gpu));
  return div_scalar(std::move(norm));
}

namespace adafactor {

/// Variables of the loop over parameters: those of one stay until the next one rebinds them.
struct Locals {
  Value grad, data, update;
};

/// transformers 5.17 optimization.py, Adafactor.step, with a given learning rate (scale_parameter and relative_step
/// off, as its Trainer sets them), neither first moment nor weight decay: in fp32, so that a half parameter and its
/// gradient are cast first.
inline void update(Builder& b, const TrainedParameter& p, const Value& gradient, Locals& l) {
  using namespace eager;
  Value parameter(b, p.weight);
  l.grad = gradient;
  l.grad = to(l.grad, DType::fp32);
  l.data = parameter;
  l.data = to(l.data, DType::fp32);
  root_mean_square(l.data);  // takes the place of the one that was kept
  l.update = add_scalar(pow_scalar(l.grad));
  if (parameter.shape().rank() >= 2) {
    Value row(b, p.states[0]), column(b, p.states[1]);
    pointwise_("mul_.Tensor", row);
    Value mean_of_row = mean(l.update, -1, false);
    add_(row, std::move(mean_of_row));
    pointwise_("mul_.Tensor", column);
    Value mean_of_column = mean(l.update, -2, false);
    add_(column, std::move(mean_of_column));
    Value whole = mean(row, -1, true);
    Value quotient = div(row, std::move(whole));
    // Adafactor._approx_sq_grad, whose locals go when it has returned.
    Value row_factor = unsqueeze(pointwise_("rsqrt_", std::move(quotient)), -1);
    Value column_factor = rsqrt(unsqueeze(column, -2));
    Value product = mul(row_factor, column_factor);
    l.update = std::move(product);
    row_factor.reset();
    column_factor.reset();
    pointwise_("mul_.Tensor", l.update, l.grad);
  } else {
    Value state(b, p.states[0]);
    pointwise_("mul_.Tensor", state);
    add_(state, l.update);
    Value root = rsqrt(state);
    l.update = mul_(std::move(root), l.grad);
  }
  Value limit = div_scalar(root_mean_square(l.update));
  limit = pointwise_("clamp_", std::move(limit));
  pointwise_("div_.Tensor", l.update, std::move(limit));
  pointwise_("mul_.Tensor", l.update);
  Value step = neg(l.update);
  add_(l.data, std::move(step));
  if (parameter.dtype() != DType::fp32) copy_(parameter, l.data);
}

/// The update of one parameter, to be put in again for others of its kind.
struct Template {
  TrainedParameter p;
  TensorId gradient = none;
  Recording run;
  std::array<NodeId, 3> before_dies{};  ///< the locals that it found, counted from its first node
  std::array<TensorId, 3> after{};
};

/// Records the updates: the first of each kind as it runs, the others as copies of it. Most parameters are those of
/// equal layers.
class Updates {
 public:
  explicit Updates(Builder& b) : b_(b) {}

  void operator()(const TrainedParameter& p, const Value& gradient) {
    // In fp32 there are no casts: the locals are the parameter and its gradient themselves, which live on.
    const bool cast = b_.graph.tensor(p.weight).dtype != DType::fp32 && gradient.dtype() != DType::fp32;
    if (!cast || !l_.grad) {
      update(b_, p, gradient, l_);
      own_ = cast;
      return;
    }
    if (!own_) return record_one(p, gradient, false);
    const auto same = std::find_if(templates_.begin(), templates_.end(), [&](const Template& t) {
      return alike(t.p.weight, p.weight) && alike(t.gradient, gradient.id());
    });
    if (same == templates_.end()) return record_one(p, gradient, true);
    copy(*same, p, gradient);
  }

 private:
  std::array<Value*, 3> locals() { return {&l_.grad, &l_.data, &l_.update}; }
  bool alike(TensorId x, TensorId y) const {
    const Tensor &s = b_.graph.tensor(x), &t = b_.graph.tensor(y);
    return s.shape == t.shape && s.strides == t.strides && s.dtype == t.dtype;
  }

  void record_one(const TrainedParameter& p, const Value& gradient, bool keep) {
    std::array<TensorId, 3> before{};
    for (std::size_t i = 0; i < 3; ++i) before[i] = locals()[i]->id();
    const GraphMark begin = b_.mark();
    update(b_, p, gradient, l_);
    own_ = true;
    if (!keep) return;
    Template& t = templates_.emplace_back(Template{.p = p, .gradient = gradient.id(), .run = record(b_.graph, begin)});
    for (std::size_t i = 0; i < 3; ++i) {
      t.before_dies[i] = b_.graph.tensor(before[i]).dies - begin.nodes;
      t.after[i] = locals()[i]->id();
    }
  }

  void copy(const Template& t, const TrainedParameter& p, const Value& gradient) {
    const GraphMark at = b_.mark();
    const TensorId moved = at.tensors - t.run.from.tensors;
    const auto own = [&](TensorId id) {
      if (id == t.p.weight) return p.weight;
      if (id == t.gradient) return gradient.id();
      for (std::size_t i = 0; i < t.p.states.count; ++i)
        if (id == t.p.states[i]) return p.states[i];
      return id;
    };
    append(b_.graph, t.run, own, [](ScopeId s) { return s; });
    b_.references_resize();
    for (std::size_t i = 0; i < 3; ++i) b_.rebind(*locals()[i], t.after[i] + moved, at.nodes + t.before_dies[i]);
  }

  Builder& b_;
  Locals l_;
  bool own_ = false;  ///< the locals are tensors of the last update's own
  std::vector<Template> templates_;
};

}  // namespace adafactor

/// Adafactor's step, parameter by parameter.
inline void adafactor_step(Builder& b, std::span<const TrainedParameter> parameters, ParameterGradients& gradients) {
  adafactor::Updates updates(b);
  for (const auto& p : parameters) updates(p, gradients.of(p.weight));
}

}  // namespace vlmest
