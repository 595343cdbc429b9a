// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <variant>

#include <vlmest/diagnose/verdict/slow_run/op_distance.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace op_distance_detail {

VLMEST_INLINE std::vector<std::int32_t> parents(const std::vector<CpuOp>& ops) {
  std::vector<std::int32_t> order(ops.size()), parent(ops.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const auto at = [&](std::int32_t i) -> const CpuOp& { return ops[static_cast<std::size_t>(i)]; };
  sort_stably(order, [&](std::int32_t a, std::int32_t b) {
    if (at(a).thread != at(b).thread) return at(a).thread < at(b).thread;
    if (at(a).time.begin != at(b).time.begin) return at(a).time.begin < at(b).time.begin;
    return at(a).time.end > at(b).time.end;
  });
  std::vector<std::int32_t> open;
  for (const auto i : order) {
    while (!open.empty() && (at(open.back()).thread != at(i).thread || at(open.back()).time.end < at(i).time.end))
      open.pop_back();
    if (!open.empty()) parent[static_cast<std::size_t>(i)] = open.back();
    open.push_back(i);
  }
  return parent;
}

VLMEST_INLINE void judge(OpDistance& d, const Device& device) {
  try {
    const Work w = work(d.op, device);
    const Roofline r = roofline(cost(d.op), device);
    const auto n = static_cast<double>(d.calls);
    d.roofline = r.time() * n;
    d.expected = w.time * n;
    d.bound = r.bound();
    if (std::holds_alternative<Matmul>(d.op)) d.faster = faster_shape(d.op, device);
    if (d.faster && d.faster->why != Cliff::alignment) d.faster.reset();
  } catch (const Error&) {
    d.roofline = d.expected = {};  // a type without a rate, or sizes that no device has
  }
}

}  // namespace op_distance_detail

VLMEST_INLINE OpDistances op_distances(const ProfileTrace& t, const GpuTime& g, const std::vector<KernelTraits>& traits,
                                       const Device* device) {
  using namespace op_distance_detail;
  OpDistances r;
  r.of_kernel.assign(t.kernels.size(), -1);
  if (!t.with_shapes) return r;
  std::unordered_map<std::int64_t, std::int32_t> by_id;
  by_id.reserve(t.ops.size());
  for (std::size_t i = 0; i < t.ops.size(); ++i)
    if (t.ops[i].id != 0) by_id.emplace(t.ops[i].id, static_cast<std::int32_t>(i));
  const std::vector<std::int32_t> parent = parents(t.ops);

  std::map<std::pair<NameId, std::int32_t>, std::int32_t> groups;  // -1: none of our ops
  const auto group = [&](const CpuOp& o) {
    const auto [known, is_new] = groups.try_emplace({o.name, o.inputs}, -1);
    if (!is_new || o.inputs == 0) return known->second;
    try {
      if (auto op = op_of(t, t.names[o.name], t.signatures[static_cast<std::size_t>(o.inputs)], device)) {
        known->second = static_cast<std::int32_t>(r.ops.size());
        r.ops.push_back({.name = o.name, .inputs = o.inputs, .op = *op});
      }
    } catch (const Overflow&) {
    }
    return known->second;
  };
  std::vector<bool> counted(t.ops.size());
  std::vector<std::int32_t> answer(t.ops.size(), -2);  // the operator that stands for another, once it was looked for
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEvent& e = t.kernels[k];
    if (e.op == 0 || e.device != g.device || e.time.begin < g.window.begin || e.time.begin >= g.window.end) continue;
    const auto innermost = by_id.find(e.op);
    if (innermost == by_id.end()) continue;
    std::int32_t at = innermost->second;
    std::vector<std::int32_t> way;
    for (; at >= 0; at = parent[static_cast<std::size_t>(at)]) {
      const auto i = static_cast<std::size_t>(at);
      if (answer[i] != -2) {
        at = answer[i];
        break;
      }
      way.push_back(at);
      if (group(t.ops[i]) >= 0) break;
    }
    for (const auto i : way) answer[static_cast<std::size_t>(i)] = at;
    if (at < 0) continue;
    const auto place = group(t.ops[static_cast<std::size_t>(at)]);
    OpDistance& d = r.ops[static_cast<std::size_t>(place)];
    if (!counted[static_cast<std::size_t>(at)]) {
      counted[static_cast<std::size_t>(at)] = true;
      ++d.calls;
    }
    ++d.kernels;
    d.measured = checked_add(d.measured, e.time.length());
    r.attributed = checked_add(r.attributed, e.time.length());
    r.of_kernel[k] = place;
    if (auto* m = std::get_if<Matmul>(&d.op); m != nullptr && m->dtype == DType::fp32)
      if (traits[static_cast<std::size_t>(e.name)].tf32) m->dtype = DType::tf32;
  }
  if (device != nullptr)
    for (OpDistance& d : r.ops)
      if (d.calls > 0) judge(d, *device);
  // In order of what is lost; those that launched nothing are dropped.
  std::vector<std::int32_t> order, place(r.ops.size(), -1);
  for (std::size_t i = 0; i < r.ops.size(); ++i)
    if (r.ops[i].calls > 0) order.push_back(static_cast<std::int32_t>(i));
  const auto at = [&](std::int32_t i) -> const OpDistance& { return r.ops[static_cast<std::size_t>(i)]; };
  sort_stably(order, [&](std::int32_t a, std::int32_t b) {
    return device != nullptr ? at(a).lost() > at(b).lost() : at(a).measured > at(b).measured;
  });
  std::vector<OpDistance> sorted;
  for (const auto i : order) {
    place[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(sorted.size());
    sorted.push_back(at(i));
  }
  r.ops = std::move(sorted);
  for (auto& i : r.of_kernel)
    if (i >= 0) i = place[static_cast<std::size_t>(i)];
  return r;
}

}  // namespace vlmest::diagnose
