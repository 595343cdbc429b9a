// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <unordered_map>

#include <vlmest/analysis/work.hpp>
#include <vlmest/graph/builder.hpp>
#include <vlmest/parallel/buffers.hpp>
#include <vlmest/parallel/deepspeed.hpp>
#include <vlmest/parallel/zero_buckets.hpp>
#include <vlmest/transform/optimizer.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace zero {

VLMEST_INLINE std::vector<ModuleRun> module_runs(const Graph& g, const std::vector<std::int64_t>& elements) {
  std::vector<ModuleRun> r;
  const NodeId end = g.phases.back().first;  // the optimizer runs no module
  for (NodeId n = g.phases.front().first; n < end; ++n) {
    const ScopeId s = g.node(n).scope;
    if (elements[static_cast<std::size_t>(s)] == 0) continue;
    if (!r.empty() && r.back().scope == s)
      r.back().end = n + 1;
    else
      r.push_back({s, n, n + 1});
  }
  return r;
}

/// The optimizer's step over one flat fp32 parameter, as a graph of its own: its states, its temporaries, its work.
inline Graph flat_step(std::int64_t elements, Optimizer o) {
  Builder b;
  const TensorId weight = b.persistent("weight", Role::weight, DType::fp32, Shape{elements});
  const std::vector<TrainedParameter> all{{weight, make_states(b, o, weight)}};
  b.gradients.of(weight) = b.existing("grad", Role::gradient, DType::fp32, Shape{elements});
  b.begin_phase(PhaseKind::step);
  optimizer_step(b, o, all, b.gradients);
  b.gradients = {};
  b.end_phase();
  return std::move(b.graph);
}

/// The step: squares in fp64, the flat gradient in both types, then the optimizer over the partition.
inline void add_step(RankStorages& p, std::int64_t partition, std::int64_t largest, DType type, Optimizer o) {
  using enum BesideGraph;
  const NodeId last = p.step().last;
  p.add(step_temporary, size_of(Elements(largest), DType::fp64), p.in_step(0), p.in_step(1), Role::workspace);
  const std::int64_t at_once = p.layout.shard == Shard::zero3 ? std::min(partition, p.settings.sub_group) : partition;
  p.add(step_temporary, size_of(Elements(at_once), type), p.in_step(1), p.in_step(2), Role::workspace);
  p.add(gradient_partition, size_of(Elements(at_once), DType::fp32), p.in_step(1), last, Role::gradient);
  const Graph flat = flat_step(at_once, o);
  for (const Tensor& t : flat.tensors)
    if (t.alias_of == none && t.born >= flat.phases[0].first && t.role != Role::optimizer_state &&
        t.role != Role::gradient && t.role != Role::weight)
      p.add(step_temporary, requested_bytes(t), p.in_step(2 + t.born),
            t.dies == none ? last : std::max(p.in_step(2 + t.dies), p.in_step(2 + t.born) + 1), Role::workspace);
}

/// Gathered weights of stage 3: a module that runs asks for its own and for those of the next ones.
inline void add_gathered(RankStorages& p, const std::vector<std::int64_t>& elements, DType type) {
  const std::vector<ModuleRun> runs = module_runs(p.g, elements);
  const auto size = [&](std::size_t i) { return elements[static_cast<std::size_t>(runs[i].scope)]; };
  std::vector<std::int64_t> before(runs.size() + 1, 0);  // elements of all runs before each
  std::vector<std::size_t> again(runs.size(), runs.size());
  std::unordered_map<ScopeId, std::size_t> last;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    before[i + 1] = before[i] + size(i);
    if (const auto at = last.find(runs[i].scope); at != last.end()) again[at->second] = i;
    last[runs[i].scope] = i;
  }
  std::unordered_map<ScopeId, NodeId> there;  // since when
  std::int64_t live = 0;
  const auto gather = [&](std::size_t i, NodeId now) {
    if (!there.emplace(runs[i].scope, now).second) return false;
    live += size(i);
    return true;
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    gather(i, runs[i].first);
    next = std::max(next, i + 1);
    const std::int64_t most = std::min(p.settings.live - live, p.settings.prefetch);
    for (std::int64_t asked = 0; next < runs.size() && asked < most; ++next)
      if (gather(next, runs[i].first)) asked += size(next);
    if (again[i] < runs.size() && before[again[i]] - before[i + 1] < p.settings.reuse) continue;
    const auto at = there.find(runs[i].scope);
    p.add(BesideGraph::gathered_weights, size_of(Elements(size(i)), type), at->second, runs[i].end, Role::workspace,
          runs[i].scope, gathering_stream);
    live -= size(i);
    there.erase(at);
  }
}

}  // namespace zero

VLMEST_INLINE std::int64_t zero_partition(const Graph& g, const std::vector<TensorId>& order, const Layout& layout) {
  const auto part_of = [&](std::int64_t n) { return (n + layout.dp - 1) / layout.dp; };
  std::int64_t all = 0, parts = 0;
  for (const TensorId t : order) {
    all += g.tensor(t).storage.value();
    parts += part_of(g.tensor(t).storage.value());
  }
  return layout.shard == Shard::zero3 ? parts : part_of((all + 1) / 2) * 2;
}

VLMEST_INLINE Seconds zero_update(std::int64_t partition, DType type, Optimizer optimizer, const Device& device) {
  const auto bytes = [&](DType t) { return size_of(Elements(partition), t); };
  const auto moves = [&](DType from, DType to) {
    return work(MemoryOp{.read = bytes(from), .written = bytes(to), .dtype = from}, device).time;
  };
  const Graph flat = zero::flat_step(partition, optimizer);
  Seconds r = total_work(flat, flat.phases[0].first, flat.phases[0].last, op_works(flat, device)).time;
  r += moves(type, DType::fp64);
  r += work(MemoryOp{.read = bytes(DType::fp64), .dtype = DType::fp64}, device).time;
  r += moves(type, type);
  r += moves(type, DType::fp32);
  r += moves(DType::fp32, DType::fp32);
  r += moves(DType::fp32, type);
  return r;
}

VLMEST_INLINE ZeroRank zero_rank(const Graph& g, const Timeline& whole, const std::vector<TensorId>& order,
                                 const Layout& layout, std::int64_t rank, Optimizer optimizer,
                                 const ZeroSettings& settings) {
  using enum BesideGraph;
  const bool divides_weights = layout.shard == Shard::zero3;
  zero::RankStorages p{g, layout, settings, rank, layout.dp, {}};
  ZeroRank r{whole, {}, {}, {}};
  const auto parts_of = [&](std::int64_t n) { return (n + p.ranks - 1) / p.ranks; };

  std::unordered_map<TensorId, zero::Part> parts;
  std::int64_t trained = 0, largest = 0;
  const DType type = order.empty() ? DType::bf16 : g.tensor(order.front()).dtype;
  for (const TensorId t : order) {
    const std::int64_t n = g.tensor(t).storage.value();
    if (g.tensor(t).dtype != type)
      throw Error("layout.shard", "trained weights of two types are not modelled with DeepSpeed's flat tensors",
                  "take layout.shard=fsdp2 or none");
    parts[t] = {t, trained, n, none};
    trained += n;
  }
  const std::int64_t partition = zero_partition(g, order, layout);
  const Phase &first_backward = g.phases[1], &backward = g.phases[g.phases.size() - 2];

  // What the graph has of one GPU goes, or gets this rank's size.
  std::vector<std::int64_t> of_scope(g.scopes.size(), 0);  // elements that a module gathers
  for (std::size_t i = 0; i < r.timeline.storages().size(); ++i) {
    const Storage& s = r.timeline.storages()[i];
    if (s.tensor == none) continue;
    const Tensor& t = g.tensor(s.tensor);
    const bool state = s.role == Role::optimizer_state;
    const bool in_step = s.born >= p.step().first && s.role != Role::buffer && s.role != Role::input;
    if (s.role == Role::weight) {
      const bool is_trained = parts.contains(s.tensor);
      if (!divides_weights) {
        if (is_trained)
          r.timeline.resize(i, Bytes{});
        else
          r.weights += s.bytes;
        continue;
      }
      const std::int64_t n = t.storage.value();
      const Bytes part = size_of(Elements(parts_of(n)), t.dtype);
      r.weights += part;
      if (n <= settings.persistence) {
        r.weights += s.bytes;  // and stays whole
        p.add_standing(kept_shards, part, Role::buffer, s.scope);
        continue;
      }
      of_scope[static_cast<std::size_t>(s.scope)] += n;
      r.timeline.resize(i, part);
    } else if (s.role == Role::gradient) {
      const auto of = parts.find(t.of);
      if (of != parts.end()) of->second.gradient = s.born;
      const NodeId dies = layout.shard == Shard::zero1 ? backward.last : s.born + 1;
      const Bytes bytes = s.bytes;
      p.add(whole_gradients, bytes, s.born, dies, Role::gradient, s.scope);
      r.timeline.resize(i, Bytes{});
    } else if (state || in_step) {
      r.timeline.resize(i, Bytes{});
    }
  }
  std::vector<zero::Part> reduced;
  const std::int64_t from = rank * partition, to = from + partition;
  for (const TensorId t : order) {
    zero::Part x = parts[t];
    // With several micro-batches the gradients are born in the first backward; the last one takes as long.
    if (x.gradient != none)
      x.gradient = std::min(x.gradient + (backward.first - first_backward.first), backward.last - 1);
    if (x.gradient == none) x.gradient = backward.last - 1;
    const std::int64_t own =
        divides_weights ? parts_of(x.elements) : std::min(x.first + x.elements, to) - std::max(x.first, from);
    largest = std::max(largest, own);
    reduced.push_back(x);
  }

  const Bytes flat = size_of(Elements(divides_weights ? 0 : partition * p.ranks), type);
  p.add_standing(flat_weights, flat, Role::weight);
  r.weights += flat;
  r.gradients = size_of(Elements(partition), type);
  const Bytes masters = type == DType::fp32 && divides_weights ? Bytes{} : size_of(Elements(partition), DType::fp32);
  Bytes states{};
  for (const Tensor& t : zero::flat_step(partition, optimizer).tensors)
    if (t.role == Role::optimizer_state) {
      p.add_standing(optimizer_states, requested_bytes(t), Role::optimizer_state);
      states += requested_bytes(t);
    }
  p.add_standing(master_weights, masters, Role::optimizer_state);
  r.optimizer = states + masters;

  if (divides_weights) {
    const Bytes bucket = size_of(Elements(settings.reduce_bucket), type);
    p.add_standing(gradient_bucket, bucket, Role::buffer);
    p.add_standing(gradient_partition, r.gradients, Role::gradient);
    zero::add_gathered(p, of_scope, type);
    // A full bucket is put together anew for the reduce-scatter (coalesced_collectives.py, reduce_scatter_coalesced).
    p.add(reduce_scatter_input, size_of(Elements(std::min(trained, settings.reduce_bucket)), type), backward.last - 1,
          backward.last, Role::workspace, 0, reducing_stream);
  } else {
    zero::Buckets(p, partition, type).add(reduced);
    if (g.phases.size() > 3 && layout.shard == Shard::zero2)
      p.add(gradient_partition, r.gradients, first_backward.last - 1, backward.last, Role::gradient);
  }
  zero::add_step(p, partition, largest, type, optimizer);
  r.timeline.add(p.added);
  return r;
}

}  // namespace vlmest::parallel
