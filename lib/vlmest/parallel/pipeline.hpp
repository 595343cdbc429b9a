// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/schedule.hpp>

/// A training graph cut into the stages of a pipeline, between layers of the language model. The vision tower, the
/// projector and the embedding are with the first stage, the last norm, the head and the loss with the last; a head
/// that is tied to the embedding has a copy of it there.
namespace vlmest::parallel {

/// Which stage runs what.
struct Stages {
  int count = 1;
  std::vector<int> of_scope;  ///< none (-1): of no layer; what stands beside it decides
  std::vector<int> of_node;
  std::vector<std::int64_t> layers;  ///< of the language model in each stage
};

/// Cuts by `layout.stages`, or as evenly as the layers allow, with the longer ones first. Throws Error where there are
/// not that many layers.
Stages cut(const Graph& g, const Layout& layout);

/// What a stage holds, as lifetimes in the graph of the whole model: its own weights, gradients and states; what its
/// nodes make, and what they read of another stage's, which is here from their first use on (the buffer of a receive,
/// or what every stage computes for itself); and the saved activations of `held` micro-batches beside the one that
/// runs.
Timeline stage_timeline(const Graph& g, const Timeline& whole, const Stages& stages, int stage, double held);

/// The graph without the scratch of what other stages run.
Graph stage_graph(const Graph& g, const Stages& stages, int stage);

/// How long each stage takes for a micro-batch: its kernels, or its launches where they take longer.
std::vector<StageTime> stage_times(const Graph& g, const Stages& stages, std::span<const Work> of_ops, const Device& d);

/// What goes from one stage to the next in a forward: the largest activation that the first layer of a later stage
/// reads and the stage before has made.
Bytes sent_between(const Graph& g, const Stages& stages);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/pipeline.hpp>
#endif
