// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <vlmest/analysis/work.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/schedule.hpp>

/// A training graph cut into the stages of a pipeline, between layers of the language model. The vision tower, the
/// projector and the embedding are with the first stage, the last norm, the head and the loss with the last; a head
/// that is tied to the embedding has a copy of it there.
namespace vlmest::parallel {

/// Which stage runs what. Where a rank has several chunks of layers, each is a stage, and they go round the ranks.
struct Stages {
  int ranks = 1;
  int chunks = 1;             ///< of each rank
  std::vector<int> of_scope;  ///< none (-1): of no layer; what stands beside it decides
  std::vector<int> of_node;
  std::vector<char> in_layer;  ///< whether a scope is in a layer of the language model

  int count() const { return ranks * chunks; }
  int rank(int stage) const { return stage % ranks; }
  int chunk(int stage) const { return stage / ranks; }
  int stage(NodeId n) const { return of_node[static_cast<std::size_t>(n)]; }
  /// Where a weight is: what belongs to no layer and to nothing before them, the last norm and the head, is last.
  int of_weight(ScopeId s) const {
    const int own = of_scope[static_cast<std::size_t>(s)];
    return own != -1 ? own : count() - 1;
  }
};

/// Cuts by `layout.stages`, or as evenly as the layers allow, with the longer ones first. Throws Error where there are
/// not that many layers, or where they are in several lists, as an encoder's and a decoder's.
Stages cut(const Graph& g, const Layout& layout);

/// Layers of the language model for each stage so that their kernels take equally long, as far as whole layers allow:
/// fewer beside the vision tower and beside the head. Empty where there are fewer layers than stages.
std::vector<std::int64_t> balanced_layers(const Graph& g, int stages, std::span<const Work> of_ops);

/// Throws Error where a stage reads of an earlier one more than the hidden states of the stage before, which is all
/// that a pipeline sends: keys that layers lend each other, pictures' features in later layers, embeddings of every
/// layer.
void expect_chain(const Graph& g, const Stages& stages);

/// What stages send each other, by the tensors' owners: the hidden states behind the last layer of a stage, and in the
/// backward their gradients.
enum class Crossing : std::uint8_t { none, forward, backward };
std::vector<Crossing> crossings(const Graph& g, const Stages& stages);

/// Bytes of the hidden states that go from each stage to the next one.
std::vector<Bytes> sent(const Graph& g, const Stages& stages, const std::vector<Crossing>& crossings);

/// The graph without the scratch of what other ranks run.
Graph rank_graph(const Graph& g, const Stages& stages, int rank);

/// How long each rank takes for a micro-batch: its kernels, or its launches where they take longer. `beside`: what each
/// rank's host does besides; none where it is empty.
std::vector<StageTime> stage_times(const Graph& g, const Stages& stages, std::span<const Work> of_ops, const Device& d,
                                   std::span<const StageTime> beside = {});

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/pipeline.hpp>
#endif
