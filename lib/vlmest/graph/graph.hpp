// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/graph/part.hpp>
#include <vlmest/graph/run_script.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/tensor/tensor.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// Names an op of a graph.
using OpId = std::int32_t;

/// What is asked of an op of ATen beside what it costs.
enum class AtenTrait : std::uint8_t {
  plain,
  product,       ///< selective checkpointing keeps its results
  function,      ///< element by element, and takes a thread longer than loading its argument: erf, tanh
  accumulation,  ///< adds into its first argument
  lists,         ///< takes lists of tensors
  outside,       ///< none of ATen's: a kernel that a package launches itself, unseen by what watches ATen
};

/// An op's name in ATen, without its namespace. It must outlive the graph.
struct AtenOp {
  const char* name;
  AtenTrait trait;
  constexpr AtenOp(const char* called, AtenTrait asked = AtenTrait::plain) : name(called), trait(asked) {}
};
constexpr AtenOp product(const char* name) { return {name, AtenTrait::product}; }

/// One execution of an op. Inputs and outputs are ranges of Graph::edges; scratch is what the library behind the op
/// takes from the allocator while it runs, a range of Graph::scratch.
struct Node {
  OpId op = none;
  AtenTrait trait = AtenTrait::plain;
  const char* name = "";  ///< the ATen op's name, without its namespace
  ScopeId scope = 0;
  std::int32_t first_edge = 0;
  std::int32_t first_scratch = 0;
  std::int32_t inputs = 0;
  std::int32_t outputs = 0;
  std::int32_t scratch = 0;
};

/// One element of a module path. `index` is the number in `layers.17`, or none.
struct Scope {
  const char* name = "";
  ScopeId parent = none;
  std::int32_t index = none;
  Part part = Part::model;
};

/// What a stretch of nodes does: of inference, or of a training step.
enum class PhaseKind : std::uint8_t { prefill, decode, forward, backward, step };
template <>
inline constexpr std::array<std::string_view, 5> words_of<PhaseKind>{"prefill", "decode", "forward", "backward",
                                                                     "step"};

/// A stretch of nodes.
struct Phase {
  PhaseKind kind = PhaseKind::prefill;
  NodeId first = 0;
  NodeId last = 0;  ///< one past the end
  int thread = 0;   ///< of the host: autograd runs the backward in one of its own, with library handles of its own
};

/// A layer's forward that the backward runs again, up to the last tensor that it saves.
struct SecondForward {
  NodeId first = 0;
  NodeId last = 0;         ///< one past the end
  std::int64_t saved = 0;  ///< tensors that it saves for its backward, as the first forward did
};

/// One run of a layer of a stack of equal ones.
struct LayerRun {
  NodeId first = 0;
  NodeId last = 0;  ///< one past the end
  NodeId of = 0;    ///< where the run began that it is a copy of; of the first one, itself
};

/// A weight that holds all experts of a layer, of which every token goes through `top_k`.
struct RoutedWeight {
  TensorId weight = none;
  std::int64_t experts = 1, top_k = 1;
};

/// A weight that this GPU holds as one of `ranks` that divide the layer; where they hold equal ones, ranks is 1.
struct ShardedWeight {
  TensorId weight = none;
  int ranks = 1;
};

/// Everything that runs, in order, and every tensor it touches. Analyses are functions of this and store nothing here.
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<Op> ops;  ///< what the nodes execute; the copies of a repeated layer share theirs
  std::vector<TensorId> edges;
  std::vector<Bytes> scratch;
  std::vector<Scope> scopes = std::vector<Scope>(1);
  std::vector<Phase> phases;
  std::vector<TensorId> embeddings;    ///< weights of embedding modules, which an optimizer may treat apart
  std::vector<RoutedWeight> routed;    ///< weights of experts
  std::vector<ShardedWeight> sharded;  ///< weights of layers that are divided among GPUs
  /// Of weights that are gathered in another type than they are kept in (fully_shard's
  /// MixedPrecisionPolicy(param_dtype=...)), the one that they are kept, reduced to and updated in. What gathered ones
  /// have stands in the tensors.
  std::optional<DType> kept_dtype;
  ScopeId head = none;                         ///< the module that makes the logits
  std::vector<SecondForward> second_forwards;  ///< of checkpointed layers, in order
  std::vector<LayerRun> layers;                ///< of stacks (graph/repeat.hpp), in order
  RunScript script;                            ///< how the runtime goes through the phases to have them measured
  RunScript loop;                              ///< and how where it goes on: of training alone

  /// Empties it, but for the root scope; what it has allocated stays.
  void clear() {
    tensors.clear();
    nodes.clear();
    ops.clear();
    edges.clear();
    scratch.clear();
    phases.clear();
    embeddings.clear();
    routed.clear();
    sharded.clear();
    kept_dtype.reset();
    head = none;
    second_forwards.clear();
    layers.clear();
    script = loop = {};
    scopes.resize(1);
  }

  std::span<const TensorId> inputs(const Node& n) const {
    return {edges.data() + n.first_edge, static_cast<std::size_t>(n.inputs)};
  }
  std::span<const TensorId> outputs(const Node& n) const {
    return {edges.data() + n.first_edge + n.inputs, static_cast<std::size_t>(n.outputs)};
  }
  std::span<const Bytes> scratch_of(const Node& n) const {
    return {scratch.data() + n.first_scratch, static_cast<std::size_t>(n.scratch)};
  }
  const Tensor& tensor(TensorId t) const { return tensors[static_cast<std::size_t>(t)]; }
  const Node& node(NodeId n) const { return nodes[static_cast<std::size_t>(n)]; }
  const Op& op(const Node& n) const { return ops[static_cast<std::size_t>(n.op)]; }
  /// The tensors that exist before the first phase begins: parameters, buffers and inputs are among them.
  std::span<const Tensor> loaded() const {
    if (phases.empty()) return tensors;
    const auto begin = phases.front().first;
    const auto end =
        std::partition_point(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.born <= begin; });
    return {tensors.begin(), end};
  }
  /// The tensor that owns the storage of t.
  TensorId owner(TensorId t) const { return tensor(t).alias_of == none ? t : tensor(t).alias_of; }
};

/// The type that a weight is kept in.
inline DType kept_dtype(const Graph& g, const Tensor& weight) { return g.kept_dtype.value_or(weight.dtype); }

/// A graph is refused beyond this many tensors or nodes: it would take seconds and gibibytes, and no run that fits a
/// GPU comes near (LLaVA-NeXT-7B has 7,000 tensors).
inline constexpr std::size_t most_tensors = std::size_t{1} << 22;

/// Throws Error where the graph has no room for that many more tensors and nodes.
inline void check_room(const Graph& g, std::size_t tensors, std::size_t nodes) {
  if (g.tensors.size() + tensors <= most_tensors && g.nodes.size() + nodes <= most_tensors) return;
  throw Error("graph", "more than " + std::to_string(most_tensors) + " tensors in one run",
              "estimate a smaller batch, fewer or smaller images, or fewer layers");
}

/// "model.language_model.layers.17.mlp"; empty for the root.
inline std::string path(const Graph& g, ScopeId s) {
  std::string r;
  for (; s > 0; s = g.scopes[static_cast<std::size_t>(s)].parent) {
    const Scope& e = g.scopes[static_cast<std::size_t>(s)];
    std::string part = e.name;
    if (e.index != none) part += (part.empty() ? "" : ".") + std::to_string(e.index);
    r = r.empty() ? part : part + "." + r;
  }
  return r;
}

}  // namespace vlmest
