// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/parallel/states.hpp>

/// What data parallelism itself allocates in a training step, as storages beside those of its graph, so that a replay
/// sees when they are there.
///
/// DistributedDataParallel keeps buckets of the size of all gradients from its construction on (torch 2.11,
/// torch/csrc/distributed/c10d/reducer.cpp, Reducer::initialize_buckets).
///
/// fully_shard (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py, _fsdp_param.py) gathers
/// the weights of a unit, which is a layer, or everything that belongs to no layer: into one flat buffer on a stream of
/// its own, then into a storage for each weight. A forward holds the flat buffer until the next unit's weights have
/// been copied out of theirs, and the last until it ends (FSDPParamGroup.wait_for_unshard, FSDPState._post_forward). A
/// backward asks at its beginning for the last unit's of the forward, and as each runs for the one that ran before it
/// (FSDPParamGroup._backward_prefetch), also where that one has no backward: what was gathered then waits for the end
/// (finalize_backward).
///
/// Behind a unit's backward (FSDPParamGroup.post_backward, foreach_reduce) its gathered weights go, then what was
/// reduced last; its gradients are copied into a flat buffer and go but for one (Unit::named_last); their reduced part
/// comes in one storage, on a third stream. The unit of the rest is gathered from the beginning of the forward to the
/// end of the backward, and reduced then (FSDPState._root_post_backward_final_callback).
namespace vlmest::parallel {

namespace gathered {

/// The turns between two nodes in which storages go and come (analysis/timeline.hpp). Those of the rest, whose
/// reduction follows that of a unit, come after them.
namespace turn {
inline constexpr std::uint8_t reshard = 0, reduce = 0, reduced = 1, reduce_rest = 2, reduced_rest = 3, finished = 4;
inline constexpr std::uint8_t gather = 2, copied = 3, prefetch = 4;
}  // namespace turn

/// The nodes of a phase that run a unit: from the first up to, but not including, `end`.
struct Run {
  ScopeId unit = 0;
  NodeId first = 0, end = 0;
};

/// The units but for the rest, in the order in which a phase begins them.
std::vector<Run> runs(const Graph& g, const Phase& p, const std::vector<ScopeId>& unit_of);

/// A unit's weights, filled up so that they can be divided (_fsdp_common.py, _get_dim0_padded_size), and what of them
/// is reduced.
struct Unit {
  std::vector<Bytes> weights;
  Bytes gathered{};  ///< all weights
  Bytes reduced{};   ///< gradients, in the type that they are reduced in
  Bytes shard{};     ///< this rank's part of them
  Bytes cast{};      ///< of those of another type the part in their own
  /// The weight whose gradient goes when the reduction has returned, behind the others: the last of the unit's
  /// parameters, which foreach_reduce's loop over the gradients still names. none: nothing is divided.
  TensorId named_last = none;
};

/// Whether `a` stands behind `b` among a unit's parameters: a module's own stand behind those of the modules that it
/// holds (_fsdp_init.py, _get_managed_modules).
bool stands_behind(const Graph& g, TensorId a, TensorId b);

/// By the unit's scope. `held`, by tensors, are the weights that are asked about; null: all.
std::vector<Unit> units(const Graph& g, const Strategy& s, const ModelStates& states,
                        const std::vector<char>* held = nullptr);

/// A point between two nodes.
struct Moment {
  NodeId node = 0;
  std::uint8_t turn = own_turn;
};

/// When what is there for one call has gone again.
inline Moment behind(Moment m) {
  return m.turn == own_turn ? Moment{m.node + 1, 0} : Moment{m.node, static_cast<std::uint8_t>(m.turn + 1)};
}

/// Collects what the units allocate.
class UnitStorages {
 public:
  UnitStorages(std::vector<Storage>& to, const std::vector<Unit>& units) : to_(to), units_(units) {}

  /// Nothing where it would go before it comes.
  void put(BesideGraph what, ScopeId unit, Bytes bytes, Moment comes, Moment goes, std::uint8_t stream = 0,
           Role role = Role::workspace) {
    if (bytes == Bytes{} || comes.node > goes.node || (comes.node == goes.node && comes.turn >= goes.turn)) return;
    to_.push_back({none, comes.node, goes.node, unit, bytes, role, stream, what, comes.turn, goes.turn});
  }
  /// All weights of a unit.
  void put_weights(ScopeId unit, Moment comes, Moment goes) {
    for (const Bytes b : units_[static_cast<std::size_t>(unit)].weights)
      put(BesideGraph::gathered_weights, unit, b, comes, goes);
  }
  /// The flat buffer that a unit is gathered into by so many ranks; before it, where its weights are gathered in
  /// another type, this rank's part of them in that type (_fsdp_collectives.py, _get_param_all_gather_inputs).
  void put_flat(ScopeId unit, const Graph& g, int ranks, Moment comes, Moment goes) {
    const Bytes all = units_[static_cast<std::size_t>(unit)].gathered;
    if (g.kept_dtype)
      put(BesideGraph::all_gather_input, unit, Bytes(all.value() / ranks), comes, behind(comes), gathering_stream);
    put(BesideGraph::all_gather_output, unit, all, comes, goes, gathering_stream);
  }

 private:
  std::vector<Storage>& to_;
  const std::vector<Unit>& units_;
};

}  // namespace gathered

/// The order in which fully_shard divides weights that are made whole on the GPU: those of each layer, then the rest
/// (_fsdp_param.py, FSDPParam._init_sharded_param). What the whole ones leave stays in the allocator's cache. Nothing
/// where they have no room on a GPU with so much memory, each in segments of its own: they are then divided elsewhere.
/// `held` as above.
std::vector<std::vector<TensorId>> divided_weights(const Graph& g, const Strategy& s, const ModelStates& states,
                                                   Bytes memory, const std::vector<char>* held = nullptr);

/// Where weights are gathered in another type than they are kept in, a caller has inputs of the latter, and fully_shard
/// casts them as the forward begins (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _pre_forward): the cast ones
/// stay until it has returned, or as long as a backward needs them. Those of the inputs that the timeline has.
std::vector<Storage> cast_inputs(const Graph& g, const Timeline& t);

/// What a training step allocates for its collectives. The graph's own tensors have their whole sizes.
std::vector<Storage> data_parallel_storages(const Graph& g, const Strategy& s, const ModelStates& states,
                                            const StepCollectives& c);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/buffers.hpp>
#endif
