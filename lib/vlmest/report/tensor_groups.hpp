// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/report/live_tensor.hpp>

namespace vlmest {

/// Tensors of a peak that are the same but for the layer that they belong to.
struct TensorGroup {
  std::string name;
  std::string scope;  ///< with the first and last layer: "model.layers.0-31.mlp"
  Role role = Role::workspace;
  Shape shape;
  std::string dtype;
  std::size_t count = 0;
  Bytes bytes{};  ///< of all
};

namespace tensor_groups {

/// A module path cut at its outermost number.
struct CutPath {
  std::string before, after;
  std::int32_t index = none;
};

CutPath cut_path(const Graph& g, ScopeId s);

}  // namespace tensor_groups

/// The entries of a peak in groups, by bytes. They add up to the whole.
std::vector<TensorGroup> grouped(const Graph& g, const std::vector<LiveTensor>& all);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/tensor_groups.hpp>
#endif
