// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/graph/autocast.hpp>
#include <vlmest/graph/tape.hpp>
#include <vlmest/library/gpu.hpp>

namespace vlmest {

/// Records a forward pass as it would run: tensors with their owners, nodes in order, scopes. Holds the graph under
/// construction and the reference counts of its storages.
class Builder {
 public:
  Graph graph;
  Gpu gpu;  ///< that runs the graph; clear() keeps it

  void clear() {
    autocast = {};
    gradients.by_tensor.clear();
    shared = {};
    history.clear();
    saving = {};
    checkpointing = vision_checkpointing = Checkpoint::off;
    first_adapter = last_adapter = none;
    grad_enabled_ = tracking_ = false;
    graph.clear();
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
  NodeId emit(AtenOp aten, Op op, std::span<const TensorId> in, std::span<const TensorId> out,
              std::initializer_list<Bytes> scratch = {}) {
    if (tracking_) {
      check_derivative();
      history.forget();
    }
    if (saving.products && aten.trait == AtenTrait::product && recall(out)) return none;
    check_room(graph, 0, 1);
    Node n{.op = static_cast<OpId>(graph.ops.size()), .trait = aten.trait, .name = aten.name, .scope = scope_};
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
    if (saving.products && saving.drop && aten.trait == AtenTrait::product)
      for (const TensorId t : out) saving.kept.emplace_back(*this, t);
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

  void begin_phase(PhaseKind kind, int thread = 0) { graph.phases.push_back({kind, now(), now(), thread}); }
  void end_phase() {
    if (tracking_) {
      check_derivative();
      history.forget();
    }
    graph.phases.back().last = now();
  }
  NodeId now() const { return static_cast<NodeId>(graph.nodes.size()); }

  void retain(TensorId id) {
    ++refs_[static_cast<std::size_t>(graph.owner(id))];
    if (tracking_) history.hold(id, graph.tensors.size());
  }
  void release(TensorId id) {
    const TensorId o = graph.owner(id);
    if (--refs_[static_cast<std::size_t>(o)] == 0)
      graph.tensors[static_cast<std::size_t>(o)].dies = moment_ == none ? now() : moment_;
    if (tracking_) {
      if (releases_) releases_->push_back({o, now()});
      history.drop(id);
    }
  }
  /// Drops v as if it had been done before node `at`, which is already recorded.
  void release_at(Value& v, NodeId at) {
    moment_ = at;
    v.reset();
    moment_ = none;
  }

  // ---- autograd
  /// How many Values hold exactly this tensor; those of views of it do not count.
  std::int32_t holders(TensorId id) const { return history.handles(id); }
  bool grad_enabled() const { return grad_enabled_; }
  void enable_grad(bool on) {
    grad_enabled_ = on;
    tracking_ = tracking_ || on;
  }
  /// Under a dispatch mode (as recorders use) torch accumulates no gradients in place, and adds no mask to scores so.
  bool observed = false;
  /// A tensor that collects a gradient: a parameter.
  void require_grad(TensorId parameter) { history.require_grad(parameter); }
  bool needs_grad(TensorId id) const { return grad_enabled_ && history.needs_grad(id); }
  GradEdge edge(const Value& v) const {
    return v && needs_grad(v.id()) ? history.edge(v.id(), graph.tensor(v.id())) : GradEdge{};
  }
  /// Notes that `outputs` were made by a differentiable call.
  void differentiable(GradCall call, std::span<const Value> outputs) {
    call.scope = scope_;
    call.saves = std::exchange(saving.noted, saving.saved) != saving.saved;
    if (saving.drop && call.saves) call.run = nullptr;
    for (const Value& o : outputs)
      if (unchecked_ && o.id() == graph.outputs(graph.nodes.back()).front()) unchecked_ = false;
    history.add(std::move(call), outputs);
  }
  /// A tensor that a call saves for its backward; nothing where checkpointing drops it.
  Value save(const Value& v) {
    if (++saving.saved == saving.stop_at) saving.stop = mark();
    return saving.drop ? Value() : v;
  }
  Saving saving;
  /// What checkpointed layers keep: all that they save, their input alone, or that and what their products gave.
  enum class Checkpoint : std::uint8_t { off, all, all_but_products };
  Checkpoint checkpointing = Checkpoint::off, vision_checkpointing = Checkpoint::off;

  // ---- for copying recorded layers (graph/repeat.hpp, graph/layer_gradient.hpp)
  /// Layers that run alike are recorded once and copied, so often at most: what is then left out has no other sizes.
  bool copy_layers = true;
  std::int32_t most_copies = INT32_MAX;
  /// Parameters that were added to the finished model, layer by layer: [first, last).
  TensorId first_adapter = none, last_adapter = none;
  GraphMark mark() const { return vlmest::mark(graph); }
  /// Takes back all that was recorded since `m` (but for its ops, which copies may share). Nothing holds any of it.
  void truncate(const GraphMark& m) {
    vlmest::truncate(graph, m);
    refs_.resize(static_cast<std::size_t>(m.tensors));
    unchecked_ = false;
  }
  /// While it is set, every release of a hold is noted in it.
  void note_releases(std::vector<Release>* to) { releases_ = to; }
  void revive(TensorId owner) { graph.tensors[static_cast<std::size_t>(owner)].dies = none; }
  void forget() { history.forget(); }
  std::int32_t references(TensorId id) const { return refs_[static_cast<std::size_t>(graph.owner(id))]; }
  /// Of all storages, by their owners.
  const std::vector<std::int32_t>& reference_counts() const { return refs_; }
  void references_resize() { refs_.resize(graph.tensors.size(), 0); }
  /// Points v at another tensor or at none; its old storage dies at node `dies`; none: with its other holders.
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

  /// In the second run of a function: the results of a product are those that the first run kept.
  bool recall(std::span<const TensorId> out) {
    if (saving.drop || !grad_enabled_ || saving.recalled >= saving.kept.size()) return false;
    for (const TensorId id : out) {
      Value& kept = saving.kept[saving.recalled++];
      Tensor& t = graph.tensors[static_cast<std::size_t>(id)];
      t.alias_of = graph.owner(kept.id());
      t.storage = Elements{};
      kept.reset();
    }
    unchecked_ = false;
    return true;
  }

  std::vector<std::int32_t> refs_;
  std::vector<Release>* releases_ = nullptr;
  NodeId moment_ = none;  ///< when what is released now dies, where that is not now
  bool grad_enabled_ = false, tracking_ = false;
  bool unchecked_ = false;  ///< the last op got something that needs a gradient
  ScopeId scope_ = 0;

 public:
  /// What autograd and autocast keep. Last, because what they hold counts in refs_.
  History history;
  ParameterGradients gradients;
  SharedRuns shared;
  AutocastState autocast;
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
