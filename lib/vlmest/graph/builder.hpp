// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/graph/tape.hpp>

namespace vlmest {

/// Records a forward pass as it would run: tensors with their owners, nodes in order, scopes. Holds the graph under
/// construction and the reference counts of its storages.
class Builder {
 public:
  Graph graph;

  void clear() {
    tape.clear();
    grad_call_.clear();
    grad_output_.clear();
    handles_.clear();
    forgotten_.clear();
    grad_enabled_ = tracking_ = false;
    graph.tensors.clear();
    graph.nodes.clear();
    graph.ops.clear();
    graph.edges.clear();
    graph.scratch.clear();
    graph.phases.clear();
    graph.scopes.resize(1);
    refs_.clear();
    scope_ = 0;
  }

  // ---- scopes
  ScopeId scope() const { return scope_; }
  void enter(ScopeId s) { scope_ = s; }
  /// A module below the current one; it belongs to the same part unless told otherwise.
  ScopeId child(const char* name, std::int32_t index = none) {
    return child(name, index, graph.scopes[static_cast<std::size_t>(scope_)].part);
  }
  ScopeId child(const char* name, std::int32_t index, Part part) {
    graph.scopes.push_back({name, scope_, index, part});
    return static_cast<ScopeId>(graph.scopes.size() - 1);
  }

  // ---- tensors
  /// A storage that something outside the graph holds for good: a weight or a buffer.
  TensorId persistent(const char* name, Role role, DType dtype, const Shape& shape) {
    const TensorId id = add_tensor(name, role, dtype, shape, contiguous_strides(shape), none, numel(shape));
    refs_[static_cast<std::size_t>(id)] = 1;
    return id;
  }
  /// A storage that exists before the next node runs: an input, a cache left by an earlier phase.
  Value existing(const char* name, Role role, DType dtype, const Shape& shape) {
    return Value(*this, add_tensor(name, role, dtype, shape, contiguous_strides(shape), none, numel(shape)));
  }
  /// A view of v's storage.
  Value view(const Value& v, const Shape& shape, const Shape& strides) {
    return Value(*this, alias(v.id(), shape, strides, v.dtype()));
  }
  /// The same storage read as another type (view_as_real, view_as_complex).
  Value view(const Value& v, const Shape& shape, const Shape& strides, DType dtype) {
    return Value(*this, alias(v.id(), shape, strides, dtype));
  }

  // ---- nodes
  /// Starts a node; outputs follow, then inputs are attached by the caller through emit().
  NodeId emit(const char* name, Op op, std::span<const TensorId> in, std::span<const TensorId> out,
              std::initializer_list<Bytes> scratch = {}) {
    if (tracking_) {
      check_derivative();
      forget();
    }
    check_room(graph, 0, 1);
    Node n{.op = static_cast<OpId>(graph.ops.size()), .name = name, .scope = scope_};
    graph.ops.push_back(std::move(op));
    n.first_edge = static_cast<std::int32_t>(graph.edges.size());
    n.first_scratch = static_cast<std::int32_t>(graph.scratch.size());
    for (auto t : in)
      if (t != none) {
        graph.edges.push_back(t);
        ++n.inputs;
      }
    for (auto t : out) {
      graph.edges.push_back(t);
      ++n.outputs;
    }
    for (auto b : scratch)
      if (b > Bytes{}) {
        graph.scratch.push_back(b);
        ++n.scratch;
      }
    graph.nodes.push_back(std::move(n));
    unchecked_ = std::any_of(in.begin(), in.end(), [&](TensorId t) { return t != none && needs_grad(t); });
    return static_cast<NodeId>(graph.nodes.size() - 1);
  }
  /// A result that the next emitted node allocates. Dense with the given strides.
  TensorId result(DType dtype, const Shape& shape, const Shape& strides, const char* name = "") {
    return add_tensor(name, Role::activation, dtype, shape, strides, none, numel(shape));
  }
  TensorId result(DType dtype, const Shape& shape, const char* name = "") {
    return result(dtype, shape, contiguous_strides(shape), name);
  }
  /// Tells what a tensor is (a cache entry, a named activation); the name must outlive the graph.
  void label(const Value& v, const char* name, Role role = Role::activation) {
    Tensor& t = graph.tensors[static_cast<std::size_t>(graph.owner(v.id()))];
    t.name = name;
    t.role = role;
  }

  void begin_phase(const char* name) { graph.phases.push_back({name, now(), now()}); }
  void end_phase() {
    if (tracking_) {
      check_derivative();
      forget();
    }
    graph.phases.back().last = now();
  }
  NodeId now() const { return static_cast<NodeId>(graph.nodes.size()); }

  void retain(TensorId id) {
    ++refs_[static_cast<std::size_t>(graph.owner(id))];
    if (tracking_) ++handle(id);
  }
  void release(TensorId id) {
    const auto o = static_cast<std::size_t>(graph.owner(id));
    if (--refs_[o] == 0) graph.tensors[o].dies = now();
    if (tracking_ && --handle(id) == 0) drop_history(id);
  }

  // ---- autograd
  /// How many Values hold exactly this tensor; those of views of it do not count.
  std::int32_t holders(TensorId id) const {
    return static_cast<std::size_t>(id) < handles_.size() ? handles_[static_cast<std::size_t>(id)] : 0;
  }
  bool grad_enabled() const { return grad_enabled_; }
  void enable_grad(bool on) {
    grad_enabled_ = on;
    tracking_ = tracking_ || on;
  }
  /// Under a dispatch mode (as recorders use) torch does not accumulate in place.
  bool observed = false;
  /// A parameter that collects a gradient.
  void require_grad(TensorId parameter) { grad_slot(parameter) = leaf; }
  bool needs_grad(TensorId id) const {
    return grad_enabled_ && static_cast<std::size_t>(id) < grad_call_.size() &&
           grad_call_[static_cast<std::size_t>(id)] != none;
  }
  GradEdge edge(const Value& v) const {
    if (!v || !needs_grad(v.id())) return {};
    const auto i = static_cast<std::size_t>(v.id());
    const Tensor& t = graph.tensor(v.id());
    if (grad_call_[i] == leaf) return {none, 0, v.id(), t.shape, t.dtype};
    return {grad_call_[i], grad_output_[i], none, t.shape, t.dtype};
  }
  /// Notes that `outputs` were made by a differentiable call.
  void differentiable(GradCall call, std::span<const Value> outputs) {
    call.scope = scope_;
    call.outputs = static_cast<std::int32_t>(outputs.size());
    const auto at = static_cast<std::int32_t>(tape.size());
    std::int32_t n = 0;
    for (const Value& o : outputs) {
      if (unchecked_ && o.id() == graph.outputs(graph.nodes.back()).front()) unchecked_ = false;
      // Of a call in place: what made the tensor before is now reached through this call alone.
      if (grad_slot(o.id()) >= 0) forgotten_.push_back(grad_slot(o.id()));
      grad_slot(o.id()) = at;
      grad_output_[static_cast<std::size_t>(o.id())] = n++;
    }
    call.holders = static_cast<std::int32_t>(outputs.size());
    for (const auto& e : call.inputs)
      if (e.call != none) ++tape[static_cast<std::size_t>(e.call)].holders;
    tape.push_back(std::move(call));
  }
  /// Results that nothing refers to any more need their calls no longer; a call that nothing needs takes with it what
  /// it saved and its hold on earlier calls. Waits for the next op, because an op drops its inputs before it is
  /// recorded.
  void forget() {
    while (!forgotten_.empty()) {
      const auto at = static_cast<std::size_t>(forgotten_.back());
      forgotten_.pop_back();
      if (at >= tape.size()) continue;
      GradCall& c = tape[at];
      if (--c.holders > 0) continue;
      const auto run = std::move(c.run);
      c.run = nullptr;
      for (const auto& e : c.inputs)
        if (e.call != none) forgotten_.push_back(e.call);
    }
  }

  // ---- for copying recorded layers (graph/repeat.hpp)
  std::int32_t references(TensorId id) const { return refs_[static_cast<std::size_t>(graph.owner(id))]; }
  void references_resize() { refs_.resize(graph.tensors.size(), 0); }
  /// Points v at another tensor, or at none; its old storage dies at node `dies`, or, where that is none, with its
  /// other holders.
  inline void rebind(Value& v, TensorId to, NodeId dies);

 private:
  /// The shapes come by value: they may be those of a tensor in the list that grows here.
  TensorId add_tensor(const char* name, Role role, DType dtype, Shape shape, Shape strides, TensorId alias_of,
                      Elements storage) {
    check_room(graph, 1, 0);
    Tensor& t = graph.tensors.emplace_back();
    t.shape = shape;
    t.strides = strides;
    t.storage = storage;
    t.name = name;
    t.alias_of = alias_of;
    t.born = now();
    t.scope = scope_;
    t.dtype = dtype;
    t.role = role;
    refs_.push_back(0);
    return static_cast<TensorId>(graph.tensors.size() - 1);
  }
  TensorId alias(TensorId of, const Shape& shape, const Shape& strides, DType dtype) {
    const TensorId owner = graph.owner(of);
    const Role role = graph.tensor(owner).role;
    return add_tensor("", role, dtype, shape, strides, owner, Elements{});
  }

  /// Throws where the last op got something that needs a gradient and gave a floating result without history: its
  /// derivative is not written down.
  void check_derivative() {
    if (!std::exchange(unchecked_, false)) return;
    const Node& n = graph.nodes.back();
    const auto outs = graph.outputs(n);
    if (outs.empty()) return;
    const Tensor& t = graph.tensor(outs.front());
    if (!is_floating(t.dtype) || references(outs.front()) == 0) return;
    throw Error("autograd", std::string("no derivative of ") + n.name + " in " + path(graph, n.scope),
                "the model cannot be trained through this op yet");
  }

  static constexpr std::int32_t leaf = -2;
  std::int32_t& grad_slot(TensorId id) {
    if (static_cast<std::size_t>(id) >= grad_call_.size()) {
      grad_call_.resize(static_cast<std::size_t>(id) + 1, none);
      grad_output_.resize(static_cast<std::size_t>(id) + 1, 0);
    }
    return grad_call_[static_cast<std::size_t>(id)];
  }

  std::vector<std::int32_t> refs_;
  std::int32_t& handle(TensorId id) {
    if (static_cast<std::size_t>(id) >= handles_.size()) handles_.resize(graph.tensors.size(), 0);
    return handles_[static_cast<std::size_t>(id)];
  }
  void drop_history(TensorId id) {
    if (static_cast<std::size_t>(id) >= grad_call_.size()) return;
    std::int32_t& call = grad_call_[static_cast<std::size_t>(id)];
    if (call < 0) return;
    forgotten_.push_back(std::exchange(call, none));
  }

  std::vector<std::int32_t> grad_call_, grad_output_, handles_, forgotten_;
  bool grad_enabled_ = false, tracking_ = false;
  bool unchecked_ = false;  ///< the last op got something that needs a gradient
  ScopeId scope_ = 0;

 public:
  /// The differentiable calls so far, in order. Last, because what they saved counts in refs_.
  std::vector<GradCall> tape;
};

inline Value::Value(Builder& b, TensorId id) : b_(&b), id_(id) { b.retain(id); }
inline Value::Value(const Value& o) : b_(o.b_), id_(o.id_) {
  if (b_) b_->retain(id_);
}
inline void Value::reset() {
  if (b_) {
    b_->release(id_);
    b_ = nullptr;
    id_ = none;
  }
}
inline void Builder::rebind(Value& v, TensorId to, NodeId dies) {
  if (dies != none && v) {
    const auto old = static_cast<std::size_t>(graph.owner(v.id_));
    refs_[old] = 0;
    graph.tensors[old].dies = dies;
    v.b_ = nullptr;
  }
  v = to == none ? Value{} : Value(*this, to);
}
inline const Tensor& Value::tensor() const { return b_->graph.tensor(id_); }

}  // namespace vlmest
