// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/graph/recording.hpp>
#include <vlmest/graph/value.hpp>

namespace vlmest {

/// Where the gradient of a tensor flows to: the recorded call that made it, or a parameter that collects it. Shape and
/// type are the tensor's, to which a gradient is summed and cast before it is handed on.
struct GradEdge {
  std::int32_t call = none;  ///< none: nowhere
  std::int32_t output = 0;   ///< which result of that call
  TensorId parameter = none;
  Shape shape;
  DType dtype = DType::bf16;
  explicit operator bool() const { return call != none || parameter != none; }
  bool same_target(const GradEdge& o) const { return call == o.call && output == o.output && parameter == o.parameter; }
};

/// One call of a backward function: gradients of the results come in (an empty Value where none flows), gradients of
/// the inputs go out.
struct Gradients {
  std::vector<Value> in;
  std::vector<Value> out;
  std::vector<bool> wanted;
  bool wants(std::size_t i) const { return wanted[i]; }
};

/// A differentiable call of the forward pass, with what it saved captured in `run` (torch autograd's Node).
struct GradCall {
  const char* name = "";
  ScopeId scope = 0;
  std::int32_t outputs = 1;
  std::int32_t holders = 0;  ///< results and later calls that need it
  bool saves = false;        ///< a tensor, which `run` captures
  std::vector<GradEdge> inputs;
  std::function<void(Gradients&)> run;
};

/// Gradients of parameters (their .grad), by the parameter's tensor; an empty Value where there is none (yet).
struct ParameterGradients {
  std::vector<Value> by_tensor;
  Value& of(TensorId parameter) {
    if (static_cast<std::size_t>(parameter) >= by_tensor.size())
      by_tensor.resize(static_cast<std::size_t>(parameter) + 1);
    return by_tensor[static_cast<std::size_t>(parameter)];
  }
  bool has(TensorId parameter) const {
    return static_cast<std::size_t>(parameter) < by_tensor.size() && by_tensor[static_cast<std::size_t>(parameter)];
  }
};

/// Layers that run several times in one pass with the same parameters, one run after the other. Gradients are added up
/// over the runs, the latest first (InputBuffer::add), before the parameter collects their sum.
struct SharedRuns {
  std::size_t before = 0, after = 0;  ///< runs before and after the one that is recorded
  ParameterGradients sums;            ///< that are not complete yet
};

/// What becomes of the tensors that calls save: torch's saved_tensors_hooks, as torch.utils.checkpoint sets them for
/// the first run of a function and for the second one, before its backward.
struct Saving {
  bool drop = false;         ///< nothing is kept, the function runs again
  bool products = false;     ///< but what matrix products and attention kernels give is, and not computed again
  std::int64_t saved = 0;    ///< tensors saved so far
  std::int64_t noted = 0;    ///< of those, by calls that are recorded
  std::int64_t stop_at = 0;  ///< the second run ends with this one
  GraphMark stop;            ///< where it came
  std::vector<Value> kept;   ///< products, in order
  std::size_t recalled = 0;  ///< of those, in the second run
};

/// The differentiable calls so far, and which of them made each tensor. Every hold on a tensor (a handle) is counted,
/// because a tensor's history goes with the last one.
class History {
 public:
  void clear() {
    calls.clear();
    maker_.clear();
    output_.clear();
    handles_.clear();
    forgotten_.clear();
  }
  /// Tensors from `first` on lose their history, without a word to the calls that made them.
  void detach(TensorId first) {
    for (auto i = static_cast<std::size_t>(first); i < maker_.size(); ++i) maker_[i] = none;
  }
  /// Forgets tensors from `tensors` on, none of which is in use, and calls from `first` on; what those
  /// held of earlier ones is the caller's to mind.
  void truncate(std::size_t tensors, std::size_t first) {
    if (maker_.size() > tensors) {
      maker_.resize(tensors);
      output_.resize(tensors);
    }
    if (handles_.size() > tensors) handles_.resize(tensors);
    calls.resize(first);
    std::erase_if(forgotten_, [&](std::int32_t at) { return static_cast<std::size_t>(at) >= first; });
  }

  std::int32_t handles(TensorId id) const {
    return static_cast<std::size_t>(id) < handles_.size() ? handles_[static_cast<std::size_t>(id)] : 0;
  }
  void hold(TensorId id, std::size_t tensors) {
    if (static_cast<std::size_t>(id) >= handles_.size()) handles_.resize(tensors);
    ++handles_[static_cast<std::size_t>(id)];
  }
  void drop(TensorId id) {
    if (static_cast<std::size_t>(id) >= handles_.size() || --handles_[static_cast<std::size_t>(id)] > 0) return;
    if (static_cast<std::size_t>(id) >= maker_.size()) return;
    std::int32_t& call = maker_[static_cast<std::size_t>(id)];
    if (call >= 0) forgotten_.push_back(std::exchange(call, none));
  }

  void require_grad(TensorId id) { maker(id) = leaf; }
  bool needs_grad(TensorId id) const {
    return static_cast<std::size_t>(id) < maker_.size() && maker_[static_cast<std::size_t>(id)] != none;
  }
  bool is_leaf(TensorId id) const {
    return static_cast<std::size_t>(id) < maker_.size() && maker_[static_cast<std::size_t>(id)] == leaf;
  }
  GradEdge edge(TensorId id, const Tensor& t) const {
    const auto i = static_cast<std::size_t>(id);
    if (maker_[i] == leaf) return {none, 0, id, t.shape, t.dtype};
    return {maker_[i], output_[i], none, t.shape, t.dtype};
  }
  /// Notes that `outputs` were made by a call.
  void add(GradCall call, std::span<const Value> outputs) {
    const auto at = static_cast<std::int32_t>(calls.size());
    std::int32_t n = 0;
    for (const Value& o : outputs) {
      // Of a call in place: what made the tensor before is now reached through this call alone.
      if (maker(o.id()) >= 0) forgotten_.push_back(maker(o.id()));
      maker(o.id()) = at;
      output_[static_cast<std::size_t>(o.id())] = n++;
    }
    call.outputs = call.holders = n;
    for (const auto& e : call.inputs)
      if (e.call != none) ++calls[static_cast<std::size_t>(e.call)].holders;
    calls.push_back(std::move(call));
  }
  /// Results that nothing refers to any more need their calls no longer; a call that nothing needs takes with it what
  /// it saved and its hold on earlier calls. Waits for the next op, because an op drops its inputs before it is
  /// recorded.
  void forget() {
    while (!forgotten_.empty()) {
      const auto at = static_cast<std::size_t>(forgotten_.back());
      forgotten_.pop_back();
      if (at >= calls.size()) continue;
      GradCall& c = calls[at];
      if (--c.holders > 0) continue;
      const auto run = std::move(c.run);
      c.run = nullptr;
      for (const auto& e : c.inputs)
        if (e.call != none) forgotten_.push_back(e.call);
    }
  }

 private:
  static constexpr std::int32_t leaf = -2;
  std::int32_t& maker(TensorId id) {
    if (static_cast<std::size_t>(id) >= maker_.size()) {
      maker_.resize(static_cast<std::size_t>(id) + 1, none);
      output_.resize(static_cast<std::size_t>(id) + 1);
    }
    return maker_[static_cast<std::size_t>(id)];
  }
  std::vector<std::int32_t> maker_, output_, handles_, forgotten_;

 public:
  /// In order. What they saved is dropped with them, so they go before the counts of its holds.
  std::vector<GradCall> calls;
};

}  // namespace vlmest
