// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

class Builder;

/// A reference to a tensor that is being used, as a Python variable is: while any Value of a storage exists, the
/// storage is alive, and it is freed at the point of the build where the last one goes. Copying takes a further
/// reference; moving hands it on; reset() is `del`.
class Value {
 public:
  Value() = default;
  inline Value(Builder& b, TensorId id);
  inline Value(const Value& o);
  Value(Value&& o) noexcept : b_(std::exchange(o.b_, nullptr)), id_(std::exchange(o.id_, none)) {}
  Value& operator=(const Value& o) { Value t(o); swap(t); return *this; }
  Value& operator=(Value&& o) noexcept { Value t(std::move(o)); swap(t); return *this; }
  ~Value() { reset(); }

  inline void reset();
  explicit operator bool() const { return b_ != nullptr; }
  Builder& builder() const { return *b_; }
  TensorId id() const { return id_; }
  inline const Tensor& tensor() const;
  const Shape& shape() const { return tensor().shape; }
  std::int64_t size(int dim) const { return tensor().shape[dim]; }
  DType dtype() const { return tensor().dtype; }

 private:
  friend class Builder;
  void swap(Value& o) noexcept { std::swap(b_, o.b_); std::swap(id_, o.id_); }
  Builder* b_ = nullptr;
  TensorId id_ = none;
};

/// Records a forward pass as it would run: tensors with their owners, nodes in order, scopes. Holds the graph under
/// construction and the reference counts of its storages.
class Builder {
 public:
  Graph graph;

  void clear() {
    graph.tensors.clear(); graph.nodes.clear(); graph.edges.clear(); graph.scratch.clear();
    graph.phases.clear(); graph.scopes.resize(1); refs_.clear(); scope_ = 0;
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
    Node n{.op = std::move(op), .name = name, .scope = scope_};
    n.first_edge = static_cast<std::int32_t>(graph.edges.size());
    n.first_scratch = static_cast<std::int32_t>(graph.scratch.size());
    for (auto t : in)
      if (t != none) { graph.edges.push_back(t); ++n.inputs; }
    for (auto t : out) { graph.edges.push_back(t); ++n.outputs; }
    for (auto b : scratch)
      if (b > Bytes{}) { graph.scratch.push_back(b); ++n.scratch; }
    graph.nodes.push_back(std::move(n));
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
  void end_phase() { graph.phases.back().last = now(); }
  NodeId now() const { return static_cast<NodeId>(graph.nodes.size()); }

  void retain(TensorId id) { ++refs_[static_cast<std::size_t>(graph.owner(id))]; }
  void release(TensorId id) {
    const auto o = static_cast<std::size_t>(graph.owner(id));
    if (--refs_[o] == 0) graph.tensors[o].dies = now();
  }

  // ---- for copying recorded layers (graph/repeat.hpp)
  std::int32_t references(TensorId id) const { return refs_[static_cast<std::size_t>(graph.owner(id))]; }
  void references_resize() { refs_.resize(graph.tensors.size(), 0); }
  /// Points v at another tensor; its old storage dies at node `dies`, or, where that is none, with its other holders.
  inline void rebind(Value& v, TensorId to, NodeId dies);

 private:
  TensorId add_tensor(const char* name, Role role, DType dtype, const Shape& shape, const Shape& strides,
                      TensorId alias_of, Elements storage) {
    graph.tensors.push_back({.shape = shape, .strides = strides, .storage = storage, .name = name,
                             .alias_of = alias_of, .born = now(), .scope = scope_, .dtype = dtype, .role = role});
    refs_.push_back(0);
    return static_cast<TensorId>(graph.tensors.size() - 1);
  }
  TensorId alias(TensorId of, const Shape& shape, const Shape& strides, DType dtype) {
    const TensorId owner = graph.owner(of);
    const Role role = graph.tensor(owner).role;
    return add_tensor("", role, dtype, shape, strides, owner, Elements{});
  }

  std::vector<std::int32_t> refs_;
  ScopeId scope_ = 0;
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
  v = Value(*this, to);
}
inline const Tensor& Value::tensor() const { return b_->graph.tensor(id_); }

/// Enters a module's scope for as long as it lives.
class InScope {
 public:
  InScope(Builder& b, ScopeId s) : b_(b), before_(b.scope()) { b.enter(s); }
  ~InScope() { b_.enter(before_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Builder& b_;
  ScopeId before_;
};

}  // namespace vlmest
