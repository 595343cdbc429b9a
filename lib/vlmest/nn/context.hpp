// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/graph/builder.hpp>
#include <vlmest/graph/eager.hpp>
#include <vlmest/nn/stack/stack.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

struct Blocks;
struct Adapters;
struct Quantization;
struct Sharding;
struct DividedSequence;
struct RoutedRows;

/// Results of input embeddings that collect gradients though nothing before them is trained.
struct InputGradients {
  std::vector<Value> leaves;
};

/// What every block needs to build itself: the graph under construction and the choices of the run. A block is a
/// config aggregate, a `make_…` that declares its parameters in the order in which the framework creates them, and a
/// `forward` that adds what one call runs.
struct Context {
  Builder& b;
  const Plan& plan;
  const Stack& runtime;                        ///< what the plan runs on (stack_of, nn/stack/registry.hpp)
  const Blocks* blocks = nullptr;              ///< what a description adds at certain points (nn/block.hpp)
  const Value* labels = nullptr;               ///< token ids[B, S] that a training step computes its loss against
  Adapters* adapters = nullptr;                ///< low-rank adapters that linears ask for (nn/lora.hpp)
  InputGradients* input_gradients = nullptr;   ///< where embeddings are to note their results
  const Quantization* quantization = nullptr;  ///< how the checkpoint stores its weights (nn/quantization)
  const Sharding* sharding = nullptr;          ///< how layers are divided among GPUs (nn/sharding.hpp); none: whole
  /// Where a recorded run's tokens went (nn/experts.hpp); none: alike to every expert.
  const RoutedRows* routed_rows = nullptr;
  bool loads = false;   ///< only what is loaded is wanted: weights as they lie before the first forward
  bool padded = false;  ///< attention masks hold zeros: sequences of several lengths
  /// What this GPU runs of each sequence (nn/divided_sequence.hpp); none: all of it.
  DividedSequence* sequence = nullptr;

  DType dtype() const { return plan.dtype; }
  /// What the software stack that runs the model does in its own way.
  const StackTraits& stack() const { return runtime.traits; }
  const StackWords& words() const { return (*runtime.words)(); }
  /// How the process goes through the phases: alone, or as one of several ranks.
  const RunScripts& scripts() const { return sharding ? stack().rank_scripts : stack().scripts; }
  /// The attention that runs: the stack's own kernel, or what the plan asks for.
  AttentionKind attention() const { return stack().attends_by_flash ? AttentionKind::flash : plan.attention; }
};

/// A parameter of the current scope.
inline TensorId parameter(Context& c, const char* name, const Shape& shape) {
  return c.b.persistent(name, Role::weight, c.dtype(), shape);
}
/// The same of a type of its own, whatever the model's is.
inline TensorId parameter(Context& c, const char* name, const Shape& shape, DType dtype) {
  return c.b.persistent(name, Role::weight, dtype, shape);
}
/// A parameter that nothing trains (requires_grad=False).
inline TensorId fixed_parameter(Context& c, const char* name, const Shape& shape, DType dtype) {
  const TensorId t = parameter(c, name, shape, dtype);
  c.b.graph.tensors[static_cast<std::size_t>(t)].fixed = true;
  return t;
}
/// A buffer of the current scope.
inline TensorId buffer(Context& c, const char* name, const Shape& shape, DType dtype) {
  return c.b.persistent(name, Role::buffer, dtype, shape);
}
/// A module of the current scope, for as long as the guard lives.
struct Module {
  ScopeId scope;
  InScope in;
  Module(Context& c, const char* name, std::int32_t index = none) : scope(c.b.child(name, index)), in(c.b, scope) {}
  Module(Context& c, const char* name, Part part) : scope(c.b.child(name, none, part)), in(c.b, scope) {}
};

/// What a model's get_input_embeddings() gave. transformers 5.17 modeling_utils.py, enable_input_require_grads:
/// adapters over checkpointed layers make it collect a gradient, in the decoder and in the towers that name such a
/// module, so that a tower runs backward too. The tensor and its gradient live as long as the loss.
inline Value input_embedding(Context& c, Value v) {
  if (c.input_gradients && !c.b.needs_grad(v.id())) {
    c.b.require_grad(v.id());
    c.input_gradients->leaves.push_back(v);
  }
  return v;
}
/// For `model`, whose code writes features over its embeddings in place: where those are frozen and collect a gradient
/// all the same, torch refuses the step (torch/csrc/autograd/VariableTypeUtils.h, check_inplace). Throws Error then.
inline void refuse_written_leaf(const Context& c, const std::string& model) {
  if (c.input_gradients && !c.input_gradients->leaves.empty())
    throw Error("plan.checkpointing",
                "checkpointing over frozen embeddings makes them leaves that collect a gradient, over which " + model +
                    "'s code writes in place: torch refuses the step",
                "leave plan.checkpointing out, or train the language model whole");
}

/// Layers 0, 1, … of a torch.nn.ModuleList: `make(index)` declares one.
template <class Make>
auto make_layers(std::int64_t count, Make make) {
  std::vector<decltype(make(std::int32_t{}))> layers(static_cast<std::size_t>(count));
  std::int32_t i = 0;
  for (auto& layer : layers) layer = make(i++);
  return layers;
}

}  // namespace vlmest
