// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <variant>

#include <vlmest/report/roofline_points.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest {
namespace roofline_points {

VLMEST_INLINE std::string shape(const Graph& g, const Node& n) {
  const auto number = [](const char* name, std::int64_t v) { return std::string(name) + " " + std::to_string(v); };
  const auto batched = [&](std::int64_t batch) { return batch == 1 ? std::string() : number("batch", batch) + " "; };
  const Op& op = g.op(n);
  if (const auto* o = std::get_if<Matmul>(&op))
    return batched(o->batch) + number("m", o->m) + number(" n", o->n) + number(" k", o->k);
  if (const auto* o = std::get_if<StoredMatmul>(&op))
    return number("m", o->m) + number(" n", o->n) + number(" k", o->k);
  if (const auto* o = std::get_if<GroupedMatmul>(&op))
    return number("groups", o->groups) + number(" rows", o->rows) + number(" n", o->n) + number(" k", o->k);
  const auto* backward = std::get_if<AttentionBackward>(&op);
  if (const auto* o = backward ? &backward->forward : std::get_if<Attention>(&op)) {
    std::string s = batched(o->batch) + number("heads", o->heads);
    if (o->kv_heads != o->heads) s += "/" + std::to_string(o->kv_heads);
    s += number(" q", o->q_len) + number(" kv", o->kv_len) + number(" dim", o->head_dim);
    return o->causal ? s + " causal" : s;
  }
  if (n.trait == AtenTrait::lists) return number("operands", n.inputs);
  const auto tensors = n.outputs > 0 ? g.outputs(n) : g.inputs(n);
  return tensors.empty() ? std::string() : to_string(g.tensor(tensors.front()).shape);
}

VLMEST_INLINE ModulePath module_path(const Graph& g, ScopeId s) {
  ModulePath r;
  for (; s > 0; s = g.scopes[static_cast<std::size_t>(s)].parent) {
    const Scope& e = g.scopes[static_cast<std::size_t>(s)];
    std::string part = e.name;
    if (e.index != none) {
      part += part.empty() ? "#" : ".#";
      r.numbers.insert(r.numbers.begin(), e.index);
    }
    r.names = r.names.empty() ? part : part + "." + r.names;
  }
  return r;
}

VLMEST_INLINE std::string pattern(const ModulePath& m, const std::vector<bool>& differs) {
  std::string r;
  std::size_t at = 0;
  for (const char c : m.names) {
    if (c != '#') {
      r += c;
      continue;
    }
    r += differs[at] ? "*" : std::to_string(m.numbers[at]);
    ++at;
  }
  return r;
}

}  // namespace roofline_points

VLMEST_INLINE RooflinePoints place_on_roofline(const Graph& g, std::span<const Repeated> stretches,
                                               const Device& device) {
  namespace detail = roofline_points;
  const std::vector<Work> of_ops = op_works(g, device);
  std::vector<detail::ModulePath> modules;
  modules.reserve(g.scopes.size());
  for (std::size_t s = 0; s < g.scopes.size(); ++s) modules.push_back(detail::module_path(g, static_cast<ScopeId>(s)));

  using Key = std::tuple<std::string, std::string, std::string, std::array<std::int64_t, 5>, double, DType>;
  struct Group {
    std::size_t point;
    ScopeId first;
    std::vector<bool> differs;
  };
  std::map<Key, Group> groups;
  RooflinePoints r;
  for (const Repeated& stretch : stretches)
    for (NodeId id = stretch.first; id < stretch.last; ++id) {
      const Node& n = g.node(id);
      const Work& w = of_ops[static_cast<std::size_t>(n.op)];
      if (w.kernels == 0) {
        r.idle = checked_add(r.idle, stretch.times);
        continue;
      }
      const detail::ModulePath& module = modules[static_cast<std::size_t>(n.scope)];
      const Cost c = cost(g.op(n));
      const Flops performed = c.flops_causal + c.uncounted;
      const DType dtype = detail::dtype(g, n, c);
      std::string shape = detail::shape(g, n);
      const auto [at, is_new] =
          groups.try_emplace(Key{module.names,
                                 n.name,
                                 shape,
                                 {w.flops.value(), performed.value(), w.read.value(), w.written.value(), w.kernels},
                                 w.time.value,
                                 dtype},
                             Group{r.points.size(), n.scope, std::vector<bool>(module.numbers.size())});
      Group& group = at->second;
      if (is_new)
        r.points.push_back({.scope = {},
                            .name = n.name,
                            .shape = std::move(shape),
                            .op = g.op(n),
                            .dtype = dtype,
                            .engine_dtype = c.dtype,
                            .engine = c.engine,
                            .performed = performed,
                            .each = w});
      RooflinePoint& p = r.points[group.point];
      p.count = checked_add(p.count, stretch.times);
      const auto& first = modules[static_cast<std::size_t>(group.first)].numbers;
      for (std::size_t i = 0; i < first.size(); ++i)
        if (module.numbers[i] != first[i]) group.differs[i] = true;
    }
  for (const auto& [key, group] : groups)
    r.points[group.point].scope = detail::pattern(modules[static_cast<std::size_t>(group.first)], group.differs);
  for (const RooflinePoint& p : r.points) r.total += times(p.each, p.count);
  sort_stably(r.points, [](const RooflinePoint& a, const RooflinePoint& b) {
    const double x = a.time().value, y = b.time().value;
    return x != y ? x > y : std::tie(a.scope, a.name) < std::tie(b.scope, b.name);
  });
  return r;
}

VLMEST_INLINE bool same_op(const Op& a, const Op& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<Matmul>(&a)) {
    const auto& y = std::get<Matmul>(b);
    return std::tie(x->batch, x->m, x->n, x->k, x->dtype) == std::tie(y.batch, y.m, y.n, y.k, y.dtype);
  }
  if (const auto* x = std::get_if<Attention>(&a)) {
    const auto& y = std::get<Attention>(b);
    return std::tie(x->batch, x->heads, x->kv_heads, x->q_len, x->kv_len, x->head_dim, x->v_dim, x->causal, x->dtype) ==
           std::tie(y.batch, y.heads, y.kv_heads, y.q_len, y.kv_len, y.head_dim, y.v_dim, y.causal, y.dtype);
  }
  if (const auto* x = std::get_if<Norm>(&a)) {
    const auto& y = std::get<Norm>(b);
    return std::tie(x->kind, x->rows, x->width, x->dtype) == std::tie(y.kind, y.rows, y.width, y.dtype);
  }
  if (const auto* x = std::get_if<Softmax>(&a)) {
    const auto& y = std::get<Softmax>(b);
    return std::tie(x->rows, x->width, x->in, x->out) == std::tie(y.rows, y.width, y.in, y.out);
  }
  if (const auto* x = std::get_if<Fft>(&a)) {
    const auto& y = std::get<Fft>(b);
    return std::tie(x->kind, x->batch, x->n, x->rank, x->inverse, x->dtype) ==
           std::tie(y.kind, y.batch, y.n, y.rank, y.inverse, y.dtype);
  }
  if (const auto* x = std::get_if<MemoryOp>(&a)) {
    const auto& y = std::get<MemoryOp>(b);
    return std::tie(x->read, x->written, x->kernels) == std::tie(y.read, y.written, y.kernels);
  }
  return false;
}

}  // namespace vlmest
