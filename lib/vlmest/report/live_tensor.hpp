// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// One entry of a peak: a storage of the graph with what it really occupies, or scratch and workspaces of libraries.
struct LiveTensor {
  TensorId tensor = none;  ///< none: `label` says what it is
  const char* label = "";
  NodeId node = none;  ///< of scratch: the node that took it
  Bytes bytes{};
};

/// The same in words.
struct DescribedTensor {
  std::string name;
  std::string scope;
  Role role = Role::workspace;
  Shape shape;
  std::string dtype;
  Bytes bytes{};
};

inline DescribedTensor describe(const Graph& g, const LiveTensor& t) {
  if (t.tensor != none) {
    const Tensor& x = g.tensor(t.tensor);
    return {x.name, path(g, x.scope), x.role, x.shape, std::string(name(x.dtype)), t.bytes};
  }
  DescribedTensor d{.name = t.label, .shape = Shape{t.bytes.value()}, .dtype = "uint8", .bytes = t.bytes};
  if (t.node != none) {
    d.name = std::string(g.node(t.node).name) + " " + t.label;
    d.scope = path(g, g.node(t.node).scope);
  }
  return d;
}

/// The first `top` entries and the rest as one entry named "other"; the bytes add up to the whole.
inline std::vector<DescribedTensor> largest(const Graph& g, const std::vector<LiveTensor>& all, std::size_t top) {
  std::vector<DescribedTensor> r;
  Bytes rest{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < top)
      r.push_back(describe(g, all[i]));
    else
      rest += all[i].bytes;
  }
  if (rest > Bytes{}) r.push_back({.name = "other", .shape = Shape{}, .dtype = "", .bytes = rest});
  return r;
}

}  // namespace vlmest
