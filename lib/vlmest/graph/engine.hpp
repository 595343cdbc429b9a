// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <queue>
#include <vector>

#include <vlmest/graph/eager.hpp>

namespace vlmest {

/// Gradients of parameters, by the parameter's tensor; an empty Value where there is none (yet).
struct ParameterGradients {
  std::vector<Value> by_tensor;
  Value& of(TensorId parameter) {
    if (static_cast<std::size_t>(parameter) >= by_tensor.size())
      by_tensor.resize(static_cast<std::size_t>(parameter) + 1);
    return by_tensor[static_cast<std::size_t>(parameter)];
  }
};

/// Runs the recorded calls backwards from `root` as torch's engine does (torch/csrc/autograd/engine.cpp): a call runs
/// when everything that uses its results has run, the latest recorded one first; what it saved is dropped when it has
/// run; several gradients of one tensor are added up as they arrive; a gradient is summed and cast to its tensor's
/// shape and type; a parameter's gradient is kept as it arrives, or added in place to the one that is there.
class BackwardEngine {
 public:
  BackwardEngine(Builder& b, ParameterGradients& gradients) : b_(b), gradients_(gradients) {}

  void run(const Value& root, Value seed) {
    const GradEdge start = b_.edge(root);
    if (start.call == none)
      throw Error("training", "the loss depends on no trainable parameter", "unfreeze a part of the model");
    NoGrad off(b_);
    const std::size_t n = b_.tape.size();
    waiting_.assign(n, 0);
    parameter_waiting_.assign(b_.graph.tensors.size(), 0);
    buffers_.clear();
    buffers_.resize(n);
    count(start.call);
    std::priority_queue<std::int32_t> ready;
    buffer(start.call)[static_cast<std::size_t>(start.output)] = std::move(seed);
    ready.push(start.call);
    while (!ready.empty()) {
      const std::int32_t at = ready.top();
      ready.pop();
      step(at, ready);
    }
    b_.tape.clear();
  }

 private:
  GradCall& call(std::int32_t i) { return b_.tape[static_cast<std::size_t>(i)]; }
  std::vector<Value>& buffer(std::int32_t i) {
    auto& b = buffers_[static_cast<std::size_t>(i)];
    if (b.empty()) b.resize(static_cast<std::size_t>(call(i).outputs));
    return b;
  }

  /// How many calls hand a gradient to each one that is reachable.
  void count(std::int32_t from) {
    std::vector<std::int32_t> stack{from};
    std::vector<bool> seen(b_.tape.size(), false);
    seen[static_cast<std::size_t>(from)] = true;
    while (!stack.empty()) {
      const std::int32_t at = stack.back();
      stack.pop_back();
      for (const GradEdge& e : call(at).inputs) {
        if (e.parameter != none) ++parameter_waiting_[static_cast<std::size_t>(e.parameter)];
        if (e.call == none) continue;
        ++waiting_[static_cast<std::size_t>(e.call)];
        if (seen[static_cast<std::size_t>(e.call)]) continue;
        seen[static_cast<std::size_t>(e.call)] = true;
        stack.push_back(e.call);
      }
    }
  }

  void step(std::int32_t at, std::priority_queue<std::int32_t>& ready) {
    GradCall c = std::move(call(at));
    call(at).outputs = c.outputs;
    Gradients g{.in = std::move(buffers_[static_cast<std::size_t>(at)]),
                .out = std::vector<Value>(c.inputs.size()),
                .wanted = {}};
    g.in.resize(static_cast<std::size_t>(c.outputs));
    for (const auto& e : c.inputs) g.wanted.push_back(static_cast<bool>(e));
    InScope in(b_, c.scope);
    if (std::any_of(g.in.begin(), g.in.end(), [](const Value& v) { return static_cast<bool>(v); })) c.run(g);
    // Gradients in and saved tensors stay until the results have their final shape and type (engine.cpp,
    // call_function).
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      if (!c.inputs[i] || !g.out[i]) continue;
      g.out[i] = eager::sum_to(std::move(g.out[i]), c.inputs[i].shape);
      g.out[i] = eager::to(std::move(g.out[i]), c.inputs[i].dtype);
    }
    g.in.clear();
    c.run = nullptr;
    std::vector<TensorId> complete;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const GradEdge& e = c.inputs[i];
      if (e.parameter != none) {
        add_to(pending_.of(e.parameter), g.out[i]);
        if (--parameter_waiting_[static_cast<std::size_t>(e.parameter)] == 0) complete.push_back(e.parameter);
      } else if (e.call != none) {
        add_to(buffer(e.call)[static_cast<std::size_t>(e.output)], g.out[i]);
        if (--waiting_[static_cast<std::size_t>(e.call)] == 0) ready.push(e.call);
      }
    }
    g.out.clear();
    for (TensorId p : complete) accumulate(p, std::move(pending_.of(p)));
  }

  /// InputBuffer::add: the first gradient moves into the buffer, a further one is added, in place where the buffer
  /// alone holds the first and its storage and nothing observes, and stays in the list of the call's results until all
  /// of them are handed on. A view's storage is also held by its base, which it keeps, in a backward too
  /// (input_buffer.cpp, can_accumulate_inplace; ADInplaceOrView).
  void add_to(Value& sum, Value& gradient) {
    if (!gradient) return;
    if (!sum) {
      sum = std::move(gradient);
      return;
    }
    const bool alone = b_.references(sum.id()) == 1 && b_.graph.tensor(sum.id()).alias_of == none && !b_.observed;
    Value first = std::move(sum);
    sum = alone ? eager::add_(std::move(first), gradient) : eager::add(std::move(first), gradient);
  }

  /// torch/csrc/autograd/functions/accumulate_grad.h: the first gradient is kept as it is, a view with all of its
  /// storage, unless something else holds this very tensor or its layout differs from the parameter's (then it is
  /// copied into that layout, utils/grad_layout_contract.h); further ones are added in place.
  void accumulate(TensorId parameter, Value gradient) {
    if (!gradient) return;
    Value& kept = gradients_.of(parameter);
    if (kept)
      kept = eager::add_(std::move(kept), std::move(gradient));
    else if (b_.holders(gradient.id()) == 1 && eager::is_contiguous(gradient))
      kept = std::move(gradient);
    else {
      Value laid_out = eager::empty(b_, "new_empty_strided", gradient.shape(), gradient.dtype());
      kept = eager::copy_(std::move(laid_out), std::move(gradient));
    }
    b_.label(kept, "gradient", Role::gradient);
  }

  Builder& b_;
  ParameterGradients& gradients_;
  ParameterGradients pending_;
  std::vector<std::int32_t> waiting_, parameter_waiting_;
  std::vector<std::vector<Value>> buffers_;
};

}  // namespace vlmest
