// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include <vlmest/report/tensor_groups.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest {
namespace tensor_groups {

VLMEST_INLINE CutPath cut_path(const Graph& g, ScopeId s) {
  ScopeId numbered = none;
  for (ScopeId at = s; at > 0; at = g.scopes[static_cast<std::size_t>(at)].parent)
    if (g.scopes[static_cast<std::size_t>(at)].index != none) numbered = at;
  if (numbered == none) return {path(g, s), "", none};
  const std::string whole = path(g, s), to_number = path(g, numbered);
  const Scope& layer = g.scopes[static_cast<std::size_t>(numbered)];
  const std::size_t digits = std::to_string(layer.index).size();
  return {to_number.substr(0, to_number.size() - digits), whole.substr(to_number.size()), layer.index};
}

}  // namespace tensor_groups

VLMEST_INLINE std::vector<TensorGroup> grouped(const Graph& g, const std::vector<LiveTensor>& all) {
  struct Group {
    TensorGroup group;
    tensor_groups::CutPath at;
    std::vector<std::int32_t> layers;
  };
  using Key = std::tuple<std::string, std::string, std::string, Role, std::string, std::string>;
  std::map<Key, std::size_t> index;
  std::vector<Group> groups;
  for (const LiveTensor& t : all) {
    tensor_groups::CutPath at = tensor_groups::cut_path(g, scope_of(g, t));
    const Role role = role_of(g, t);
    Shape shape{t.bytes.value()};
    std::string dtype = "uint8";
    if (t.tensor != none) {
      const Tensor& x = g.tensor(t.tensor);
      shape = x.shape;
      dtype = name(x.dtype);
    }
    std::string what = name_of(g, t);
    const auto [found, fresh] =
        index.try_emplace(Key{at.before, at.after, what, role, to_string(shape), dtype}, groups.size());
    if (fresh) groups.push_back({{std::move(what), "", role, shape, dtype, 0, {}}, at, {}});
    Group& group = groups[found->second];
    ++group.group.count;
    group.group.bytes += t.bytes;
    if (at.index != none) group.layers.push_back(at.index);
  }
  std::vector<TensorGroup> r;
  for (Group& x : groups) {
    auto& l = x.layers;
    std::sort(l.begin(), l.end());
    l.erase(std::unique(l.begin(), l.end()), l.end());
    std::string layers;
    if (!l.empty()) layers = std::to_string(l.front());
    if (l.size() > 1) {
      const bool all_between = l.back() - l.front() + 1 == static_cast<std::int32_t>(l.size());
      layers += (all_between ? "-" : "..") + std::to_string(l.back());
    }
    x.group.scope = x.at.before + layers + x.at.after;
    r.push_back(std::move(x.group));
  }
  sort_stably(r, [](const TensorGroup& a, const TensorGroup& b) { return a.bytes > b.bytes; });
  return r;
}

}  // namespace vlmest
