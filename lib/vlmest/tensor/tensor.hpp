// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/tensor/dtype.hpp>
#include <vlmest/tensor/shape.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

using TensorId = std::int32_t;
using NodeId = std::int32_t;
using ScopeId = std::int32_t;
inline constexpr std::int32_t none = -1;

/// What a tensor is for.
enum class Role : std::uint8_t { weight, buffer, input, activation, kv_cache, workspace, gradient, optimizer_state };
template <>
inline constexpr std::array<std::string_view, 8> words_of<Role>{"weight",   "buffer",    "input",    "activation",
                                                                "kv_cache", "workspace", "gradient", "optimizer_state"};

/// A tensor as the framework sees it: sizes and strides over some storage. A view has an `alias_of`, the tensor that
/// owns the storage; it costs nothing and keeps its owner alive. An owner lives from node `born` (which allocates it)
/// up to, but not including, node `dies`.
struct Tensor {
  Shape shape;
  Shape strides;
  Elements storage{};  ///< elements of the allocation, where it owns one
  const char* name = "";
  TensorId alias_of = none;
  TensorId of = none;  ///< of a gradient, an optimizer's tensor or scales: the parameter it belongs to
  NodeId born = 0;
  NodeId dies = none;  ///< none: lives to the end
  ScopeId scope = 0;
  DType dtype = DType::bf16;
  Role role = Role::activation;
  bool fixed = false;     ///< a weight that its class declares with requires_grad=False
  Elements stands_for{};  ///< parameters of the model that a packed weight holds; none: as many as it has elements
};

/// Parameters of the model that a weight holds, however it is stored.
constexpr Elements parameter_count(const Tensor& t) { return t.stands_for > Elements{} ? t.stands_for : t.storage; }

/// Bytes that the owner asks the allocator for; a view asks for none.
constexpr Bytes requested_bytes(const Tensor& t) { return t.alias_of == none ? size_of(t.storage, t.dtype) : Bytes{}; }

}  // namespace vlmest
