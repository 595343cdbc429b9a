// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include <vlmest/analysis/op_time.hpp>
#include <vlmest/analysis/roofline.hpp>
#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// Sums over nodes: work, bytes, kernels, and time, as expected of real kernels and on the pure roofline.
struct Work {
  Flops flops{};
  Flops flops_causal{};
  Bytes read{}, written{};
  std::int64_t kernels = 0;
  Seconds time{};                                           ///< expected of each op (op_time.hpp), added up
  Seconds roofline{};                                       ///< of each op the largest of its three limits, added up
  Seconds compute_bound{}, memory_bound{}, launch_bound{};  ///< the expected time, by what limits each op

  Work& operator+=(const Work& o) {
    flops += o.flops;
    flops_causal += o.flops_causal;
    read += o.read;
    written += o.written;
    kernels = checked_add(kernels, o.kernels);
    time += o.time;
    roofline += o.roofline;
    compute_bound += o.compute_bound;
    memory_bound += o.memory_bound;
    launch_bound += o.launch_bound;
    return *this;
  }
  constexpr bool operator==(const Work&) const = default;
};

inline double intensity(const Work& w) { return intensity(w.flops, w.read + w.written); }

/// What limits most of the time.
inline Bound bound(const Work& w) {
  if (w.compute_bound >= w.memory_bound && w.compute_bound >= w.launch_bound) return Bound::compute;
  return w.memory_bound >= w.launch_bound ? Bound::memory : Bound::launch;
}

/// One op on the pure roofline of a device.
inline Roofline roofline(const Cost& c, const Device& device) {
  const Flops counted = c.engine == Engine::idle ? Flops{} : c.flops_causal + c.uncounted;
  return roofline(counted, c.read, c.written, c.dtype, c.engine == Engine::tensor_core, device, c.kernels);
}

/// One op on a device. Arithmetic limits it only where it does some that is counted: where the threads of a kernel that
/// moves bytes convert them, or compute where each lies, and the memory waits for them, more FLOPs would not help.
inline Work work(const Op& op, const Device& device, Operands operands = Operands::from_cache) {
  const Cost c = cost(op);
  Work w{.flops = c.flops, .flops_causal = c.flops_causal, .read = c.read, .written = c.written, .kernels = c.kernels};
  if (c.kernels == 0) return w;
  const OpTime t = op_time(op, device, operands);
  w.time = t.time;
  const Roofline limits = roofline(c, device);
  w.roofline = limits.time();
  if (t.start >= std::max(t.compute, t.memory))
    w.launch_bound = t.time;
  else
    (limits.compute > Seconds{} && t.compute >= t.memory ? w.compute_bound : w.memory_bound) = t.time;
  return w;
}

/// The work of every op of a graph, by OpId. A product's time is the longest to tell, and of the products of a model,
/// whose layers are recorded once for each kind, many are equal to one that was recorded shortly before.
inline void op_works(const Graph& g, const Device& device, std::vector<Work>& r) {
  constexpr std::size_t looked_at = 64;
  std::vector<std::size_t> products;  // of equal ones the first
  r.clear();
  r.reserve(g.ops.size());
  for (const Op& op : g.ops) {
    if (const auto* m = std::get_if<Matmul>(&op)) {
      const auto last = std::span(products).last(std::min(looked_at, products.size()));
      const auto is_equal = [&](std::size_t p) { return std::get<Matmul>(g.ops[p]) == *m; };
      if (const auto same = std::find_if(last.begin(), last.end(), is_equal); same != last.end()) {
        r.push_back(r[*same]);
        continue;
      }
      products.push_back(r.size());
    }
    r.push_back(work(op, device));
  }
}
inline std::vector<Work> op_works(const Graph& g, const Device& device) {
  std::vector<Work> r;
  op_works(g, device, r);
  return r;
}

/// n times the same work.
inline Work times(const Work& w, std::int64_t n) {
  Work r = w;
  r.flops = w.flops * n;
  r.flops_causal = w.flops_causal * n;
  r.read = w.read * n;
  r.written = w.written * n;
  r.kernels = checked_mul(w.kernels, n);
  const auto scale = static_cast<double>(n);
  for (Seconds Work::*s :
       {&Work::time, &Work::roofline, &Work::compute_bound, &Work::memory_bound, &Work::launch_bound})
    r.*s = w.*s * scale;
  return r;
}

/// The work of the nodes [first, last); `of_ops` is op_works().
inline Work work(const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops) {
  Work w;
  for (NodeId n = first; n < last; ++n) w += of_ops[static_cast<std::size_t>(g.node(n).op)];
  return w;
}

/// The same, counted op by op: for less where layers repeat, and with times that differ by their rounding.
inline Work total_work(const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops) {
  std::vector<std::int64_t> counts(g.ops.size());
  for (NodeId n = first; n < last; ++n) ++counts[static_cast<std::size_t>(g.node(n).op)];
  Work w;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) w += times(of_ops[i], counts[i]);
  return w;
}

}  // namespace vlmest
