// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <queue>
#include <vector>

#include <vlmest/graph/eager.hpp>

namespace vlmest {

/// Runs the recorded calls backwards from `root` as torch's engine does (torch/csrc/autograd/engine.cpp): a call runs
/// when everything that uses its results has run, the latest recorded one first; what it saved is dropped when it has
/// run; several gradients of one tensor are added up as they arrive; a gradient is summed and cast to its tensor's
/// shape and type; a parameter's gradient is kept as it arrives, or added in place to the one that is there.
///
/// It may run a stretch of the calls alone, those from `first` on: what flows further is added up in `outer`.
class BackwardEngine {
 public:
  struct Outer {
    GradEdge edge;
    Value gradient;
  };
  std::vector<Outer> outer;
  /// What calls saved is unpacked by a hook, as under checkpointing: it goes with the call, not with its results' final
  /// form.
  bool unpacked = false;
  /// Gradients of parameters are part of sums over several runs, which go on elsewhere: they are left to take_sum().
  bool partial = false;
  /// The node before which the last of the calls so far that saved something let go of it.
  NodeId saved_until = 0;
  /// of_one: what came before is the gradient of one run, made as the one is that comes now.
  void begin_sum(TensorId parameter, Value sum, bool of_one) {
    pending(parameter).stands_in = true;
    pending(parameter).sum = std::move(sum);
    pending(parameter).of_one = of_one;
  }
  Value take_sum(TensorId parameter) { return std::move(pending(parameter).sum); }

  /// `owns(parameter)` tells whose gradients are collected here; those of other parameters go to `outer`.
  template <class Owns>
  void run(Builder& b, const GradEdge& start, Value seed, std::int32_t first, Owns&& owns) {
    begin(b, start, std::move(seed), first, owns);
    run_rest(owns);
  }

  /// In steps: what the calls hand to each other is made ready; those run that need nothing saved, up to the first
  /// that does; equal calls, from another one on, take the places of those left; all of them run.
  template <class Owns>
  void begin(Builder& b, const GradEdge& start, Value seed, std::int32_t first, Owns&& owns) {
    b_ = &b;
    first_ = first;
    waiting_.assign(calls().size() - static_cast<std::size_t>(first), 0);
    buffers_.clear();
    buffers_.resize(waiting_.size());
    count(start.call, owns);
    buffer(start.call)[static_cast<std::size_t>(start.output)] = std::move(seed);
    ready_ = {};
    ready_.push(index(start.call));
  }
  template <class Owns>
  void run_until_saved(Owns&& owns) {
    run_while(owns, [&](const GradCall& c) { return !c.saves; });
  }
  void go_on_with(std::int32_t first) {
    if (calls().size() - static_cast<std::size_t>(first) != waiting_.size())
      throw Error("graph", "the second run of a checkpointed layer records other calls than the first");
    first_ = first;
  }
  template <class Owns>
  void run_rest(Owns&& owns) {
    run_while(owns, [](const GradCall&) { return true; });
  }

  /// The whole backward pass from `root`. Throws Error where it depends on no parameter that is trained.
  void run(const Value& root, Value seed) {
    Builder& b = root.builder();
    const GradEdge start = b.edge(root);
    if (start.call == none)
      throw Error("training", "the loss depends on no trainable parameter", "unfreeze a part of the model");
    run(b, start, std::move(seed), 0, [](TensorId) { return true; });
    b.history.calls.clear();
  }

 private:
  template <class Owns, class Go>
  void run_while(Owns& owns, Go&& go) {
    NoGrad off(*b_);
    while (!ready_.empty()) {
      const std::int32_t at = first_ + static_cast<std::int32_t>(ready_.top());
      if (!go(call(at))) return;
      ready_.pop();
      step(at, owns);
    }
  }

  std::vector<GradCall>& calls() { return b_->history.calls; }
  GradCall& call(std::int32_t i) { return calls()[static_cast<std::size_t>(i)]; }
  std::size_t index(std::int32_t i) const { return static_cast<std::size_t>(i - first_); }
  std::vector<Value>& buffer(std::int32_t i) {
    auto& b = buffers_[index(i)];
    if (b.empty()) b.resize(static_cast<std::size_t>(call(i).outputs));
    return b;
  }

  /// How many calls hand a gradient to each call and parameter that is reachable.
  template <class Owns>
  void count(std::int32_t from, Owns& owns) {
    std::vector<std::int32_t> stack{from};
    std::vector<bool> seen(waiting_.size(), false);
    seen[index(from)] = true;
    while (!stack.empty()) {
      const std::int32_t at = stack.back();
      stack.pop_back();
      for (const GradEdge& e : call(at).inputs) {
        if (e.parameter != none && owns(e.parameter)) ++pending(e.parameter).waiting;
        if (e.call < first_) continue;
        ++waiting_[index(e.call)];
        if (seen[index(e.call)]) continue;
        seen[index(e.call)] = true;
        stack.push_back(e.call);
      }
    }
  }

  template <class Owns>
  void step(std::int32_t at, Owns& owns) {
    GradCall c = std::move(call(at));
    call(at).outputs = c.outputs;
    Gradients g{.in = std::move(buffers_[index(at)]), .out = std::vector<Value>(c.inputs.size()), .wanted = {}};
    g.in.resize(static_cast<std::size_t>(c.outputs));
    g.wanted.reserve(c.inputs.size());
    for (const auto& e : c.inputs) g.wanted.push_back(static_cast<bool>(e));
    InScope in(*b_, c.scope);
    if (std::any_of(g.in.begin(), g.in.end(), [](const Value& v) { return static_cast<bool>(v); })) c.run(g);
    if (unpacked) c.run = nullptr;
    // Gradients in and saved tensors stay until the results have their final shape and type (engine.cpp,
    // call_function).
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      if (!c.inputs[i] || !g.out[i]) continue;
      g.out[i] = eager::sum_to(std::move(g.out[i]), c.inputs[i].shape);
      g.out[i] = eager::to(std::move(g.out[i]), c.inputs[i].dtype);
    }
    g.in.clear();
    c.run = nullptr;
    if (c.saves) saved_until = b_->now();
    std::vector<TensorId> complete;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const GradEdge& e = c.inputs[i];
      if (!e) continue;
      if (e.parameter != none && owns(e.parameter)) {
        Pending& p = pending(e.parameter);
        if (p.stands_in && g.out[i]) lay_like(p, g.out[i]);
        if (p.of_one && g.out[i])
          add_like(p, g.out[i]);
        else
          add_to(p.sum, g.out[i]);
        if (--p.waiting == 0) complete.push_back(e.parameter);
      } else if (e.call < first_) {
        add_to(outside(e), g.out[i]);
      } else {
        add_to(buffer(e.call)[static_cast<std::size_t>(e.output)], g.out[i]);
        if (--waiting_[index(e.call)] == 0) ready_.push(index(e.call));
      }
    }
    g.out.clear();
    if (partial) return;
    for (TensorId p : complete) accumulate(p, std::move(pending(p).sum));
  }

  Value& outside(const GradEdge& e) {
    for (Outer& o : outer)
      if (o.edge.same_target(e)) return o.gradient;
    return outer.emplace_back(Outer{e, {}}).gradient;
  }

  /// InputBuffer::add: the first gradient moves into the buffer, a further one is added, in place where it may be, and
  /// stays in the list of the call's results until all of them are handed on.
  void add_to(Value& sum, Value& gradient) {
    if (!gradient) return;
    if (!sum) {
      sum = std::move(gradient);
      return;
    }
    const bool alone = eager::is_alone(sum);
    Value first = std::move(sum);
    sum = alone ? eager::add_(std::move(first), gradient) : eager::add(std::move(first), gradient);
  }

  /// torch/csrc/autograd/functions/accumulate_grad.h: the first gradient is kept as it is, a view with all of its
  /// storage, unless something else holds this very tensor or its layout differs from the parameter's (then it is
  /// copied into that layout, utils/grad_layout_contract.h); further ones are added in place.
  void accumulate(TensorId parameter, Value gradient) {
    if (!gradient) return;
    Value& kept = b_->gradients.of(parameter);
    if (kept)
      kept = eager::add_(std::move(kept), std::move(gradient));
    else if (b_->holders(gradient.id()) == 1 && eager::is_contiguous(gradient))
      kept = std::move(gradient);
    else {
      Value laid_out = eager::empty(*b_, "new_empty_strided", gradient.shape(), gradient.dtype());
      kept = eager::copy_(std::move(laid_out), std::move(gradient));
    }
    const bool trained = b_->graph.tensor(parameter).role == Role::weight;
    b_->label(kept, "gradient", trained ? Role::gradient : Role::activation);
  }

  /// A gradient of a parameter that is not complete yet.
  struct Pending {
    std::int32_t waiting = 0;
    bool of_one = false, stands_in = false;
    Value sum;
  };
  /// What stands for a sum of gradients lies as they do.
  void lay_like(Pending& p, const Value& gradient) {
    b_->graph.tensors[static_cast<std::size_t>(p.sum.id())].strides =
        eager::strides_like(gradient.tensor(), gradient.shape());
    p.stands_in = false;
  }
  /// add_to where what stands for the first gradient does not say whether that one was a view: this one does.
  void add_like(Pending& p, Value& gradient) {
    const bool view = gradient.tensor().alias_of != none || b_->observed;
    Value first = std::move(p.sum);
    p.sum = view ? eager::add(std::move(first), gradient) : eager::add_(std::move(first), gradient);
    p.of_one = false;
  }
  Pending& pending(TensorId parameter) {
    if (static_cast<std::size_t>(parameter) >= pending_.size())
      pending_.resize(static_cast<std::size_t>(parameter) + 1);
    return pending_[static_cast<std::size_t>(parameter)];
  }

  Builder* b_ = nullptr;
  std::int32_t first_ = 0;
  std::vector<Pending> pending_;
  std::vector<std::int32_t> waiting_;
  std::vector<std::vector<Value>> buffers_;
  std::priority_queue<std::size_t> ready_;  ///< counted from first_
};

}  // namespace vlmest
