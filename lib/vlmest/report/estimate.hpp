// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include <vlmest/analysis/params.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/plan/plan.hpp>
#include <vlmest/report/inference.hpp>
#include <vlmest/report/training.hpp>

namespace vlmest {

/// What to estimate: a prefill with a decode step, a training step, or both.
enum class Phases : std::uint8_t { inference, train, all };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Phases>{"inference", "train", "all"};
constexpr bool has_inference(Phases p) { return p != Phases::train; }
constexpr bool has_training(Phases p) { return p != Phases::inference; }

struct Estimate {
  Parameters params;     ///< of the model itself, without adapters
  Elements trainable{};  ///< those that train, or the adapters'
  Sequences sequences;
  InferenceEstimate inference;  ///< empty where it was not asked for, as `training`
  TrainingEstimate training;
  std::vector<LayerRow> layers;
};

/// Makes estimates; keeps its memory between them.
class Estimator {
 public:
  /// The allocator's settings, torch's defaults; from the text of PYTORCH_ALLOC_CONF: allocator/config_text.hpp. Its
  /// capacity and total memory are the device's.
  allocator::AllocatorConfig allocator;
  /// Layers, and the tensors of the peak. A planner that tries thousands of settings does without, and asks for those
  /// of the one that it chooses.
  bool details = true;

  /// What a run of `plan` takes on `device`. Throws Error where the plan asks for the impossible.
  Estimate operator()(const Vlm& vlm, const Plan& plan, const Device& device, Phases phases = Phases::inference);

  /// Fills the estimate's inference part. Adapters count as merged into the weights; autocast's weights are fp32.
  void infer(Estimate& e, const Vlm& vlm, const Plan& asked, const Device& device);

  /// Fills the estimate's training part; `further` says that inference's is there and stays.
  void train(Estimate& e, const Vlm& vlm, const Plan& plan, const Device& device, bool further = false);

  /// The training part without what a replay on the allocator tells: of states that are divided, which change no op,
  /// the memory is asked for apart (training_estimate::add_memory).
  TrainingEstimate training_work(const Vlm& vlm, const Plan& plan, const Device& device);

  /// The graphs and lifetimes behind the estimate made last.
  const Graph& graph() const { return inference_.builder.graph; }
  const Timeline& timeline() const { return inference_.timeline; }
  const Graph& training_graph() const { return training_.builder.graph; }
  const Timeline& training_timeline() const { return training_.timeline; }
  /// The work of each op of the training graph.
  std::span<const Work> training_works() const { return training_.of_ops; }

 private:
  struct Built {
    Builder builder;
    Timeline timeline;
    std::vector<Work> of_ops;
    const Graph& analyse(const Device& device);
  };

  const Graph& record_training(const Vlm& vlm, const Plan& plan, const Sequences& s, const Device& device);

  Built inference_, training_;
};

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/estimate.hpp>
#endif
