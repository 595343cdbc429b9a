// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/report/live_tensor.hpp>

namespace vlmest::diagnose {

/// What each tensor of a graph would be blamed as: weights, gradients, optimizer_state, kv_cache, attention_scores,
/// logits, fft_buffers, vision_tiles (whatever else the vision tower makes), activations. Read off the graph:
/// - scores are what a softmax of a module reads and writes, and everything else of that size in the module;
/// - logits have the width of the output head's product, in the head and in the loss;
/// - FFT buffers are what a transform reads, writes or takes as work area, and what else its module makes.
class TensorKinds {
 public:
  explicit TensorKinds(const Graph& g) : g_(g), kinds_(g.tensors.size(), Cause::activations) {
    find_modules();
    for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i] = kind(g.tensors[i]);
  }

  Cause of(const LiveTensor& t) const {
    if (t.tensor != none) return kinds_[static_cast<std::size_t>(t.tensor)];
    if (t.node == none) return Cause::activations;
    if (in_step(t.node)) return Cause::optimizer_state;
    return of_module(g_.node(t.node).scope, none);
  }
  /// Tokens of the output head's vocabulary; 0 without a head.
  std::int64_t vocabulary() const { return vocabulary_; }

 private:
  /// The same count of elements of one module.
  using Size = std::pair<ScopeId, std::int64_t>;

  void find_modules() {
    for (const Node& n : g_.nodes) {
      const Op& op = g_.op(n);
      if (std::holds_alternative<Fft>(op)) transforms_.insert(n.scope);
      if (std::holds_alternative<Softmax>(op) && n.outputs > 0) {
        const Tensor& t = g_.tensor(g_.outputs(n).front());
        if (t.shape.rank() >= 3) scores_.insert({n.scope, numel(t.shape).value()});
      }
      if (vocabulary_ == 0 && std::holds_alternative<Matmul>(op) && n.outputs > 0 && n.scope == g_.head) {
        const Shape& s = g_.tensor(g_.outputs(n).front()).shape;
        vocabulary_ = s[s.rank() - 1];
      }
    }
  }
  Cause kind(const Tensor& t) const {
    switch (t.role) {
      case Role::weight:
      case Role::buffer: return Cause::weights;
      case Role::gradient: return Cause::gradients;
      case Role::optimizer_state: return Cause::optimizer_state;
      case Role::kv_cache: return Cause::kv_cache;
      default: break;
    }
    // An optimizer's temporaries are as large as what it updates.
    if (in_step(t.born)) return Cause::optimizer_state;
    if (t.of != none) return Cause::gradients;
    if (t.role == Role::input)
      return t.shape.rank() > 2 && is_floating(t.dtype) ? Cause::vision_tiles : Cause::activations;
    const std::int64_t n = t.storage.value();
    if (vocabulary_ > 0 && t.shape.rank() > 0 && t.role == Role::activation) {
      const std::int64_t last = t.shape[t.shape.rank() - 1];
      const Part part = g_.scopes[static_cast<std::size_t>(t.scope)].part;
      if (last == vocabulary_ && part != Part::vision) return Cause::logits;
    }
    return of_module(t.scope, n);
  }
  Cause of_module(ScopeId scope, std::int64_t elements) const {
    if (elements != none && scores_.contains({scope, elements})) return Cause::attention_scores;
    for (ScopeId s = scope; s > 0; s = g_.scopes[static_cast<std::size_t>(s)].parent)
      if (transforms_.contains(s)) return Cause::fft_buffers;
    const Part part = g_.scopes[static_cast<std::size_t>(scope)].part;
    return part == Part::vision || part == Part::projector ? Cause::vision_tiles : Cause::activations;
  }
  bool in_step(NodeId n) const {
    return !g_.phases.empty() && g_.phases.back().kind == PhaseKind::step && n >= g_.phases.back().first;
  }

  const Graph& g_;
  std::vector<Cause> kinds_;
  std::set<Size> scores_;
  std::set<ScopeId> transforms_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace vlmest::diagnose
