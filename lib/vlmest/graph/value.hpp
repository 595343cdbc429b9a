// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  Value(Builder& b, TensorId id);
  Value(const Value& o);
  Value(Value&& o) noexcept : b_(std::exchange(o.b_, nullptr)), id_(std::exchange(o.id_, none)) {}
  Value& operator=(const Value& o) {
    Value t(o);
    swap(t);
    return *this;
  }
  Value& operator=(Value&& o) noexcept {
    Value t(std::move(o));
    swap(t);
    return *this;
  }
  ~Value() { reset(); }

  void reset();
  explicit operator bool() const { return b_ != nullptr; }
  Builder& builder() const { return *b_; }
  TensorId id() const { return id_; }
  const Tensor& tensor() const;
  const Shape& shape() const { return tensor().shape; }
  std::int64_t size(int dim) const { return tensor().shape[dim]; }
  DType dtype() const { return tensor().dtype; }

 private:
  friend class Builder;
  void swap(Value& o) noexcept {
    std::swap(b_, o.b_);
    std::swap(id_, o.id_);
  }
  Builder* b_ = nullptr;
  TensorId id_ = none;
};

}  // namespace vlmest
