// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/stack/allocation_words.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// Whether a run trained or answered prompts, by what it left behind.
namespace vlmest::diagnose {

/// What is estimated of a run: a training step, or a prefill with its decode steps.
enum class Mode : std::uint8_t { inference, training };

/// What evidence tells, with the words that tell it.
struct ToldMode {
  Mode mode = Mode::inference;
  std::string by;  ///< "`training_step` in trainer.py"
};

constexpr std::string_view name(Mode m) { return m == Mode::training ? "training" : "inference"; }

namespace run_mode {

using allocation_site::Part;
using allocation_site::Rule;

/// Frames that decide. The innermost one does: a trainer that generates is answering prompts at that moment, and one
/// that evaluates keeps nothing for a backward. Names of torch, transformers (trainer.py, generation/utils.py),
/// accelerate, DeepSpeed, Lightning, vLLM and SGLang.
inline constexpr auto deciding = std::to_array<Rule<Mode>>({
    {Part::code, "_engine_run_backward", Mode::training},
    {Part::code, ".backward(", Mode::training},
    {Part::function, "backward", Mode::training},
    {Part::code, "optimizer.step(", Mode::training},
    {Part::file, "torch/optim/", Mode::training},
    {Part::file, "bitsandbytes/optim/", Mode::training},
    {Part::file, "torch/utils/checkpoint.py", Mode::training},
    {Part::function, "training_step", Mode::training},
    {Part::code, "_reduce_and_partition_ipg_grads", Mode::training},
    {Part::function, "evaluation_loop", Mode::inference},
    {Part::function, "prediction_step", Mode::inference},
    {Part::function, "validation_step", Mode::inference},
    {Part::function, "generate", Mode::inference},
    {Part::function, "_sample", Mode::inference},
    {Part::code, ".generate(", Mode::inference},
    {Part::code, "execute_model(", Mode::inference},
    {Part::code, "profile_run", Mode::inference},
    {Part::file, "/vllm/", Mode::inference},
    {Part::file, "/sglang/", Mode::inference},
    {Part::file, "/lmdeploy/", Mode::inference},
});

/// Frames of the program around it, which tell where nothing further in decides.
inline constexpr auto around = std::to_array<Rule<Mode>>({
    {Part::function, "_inner_training_loop", Mode::training},
    {Part::function, "compute_loss", Mode::training},
    {Part::code, "compute_loss(", Mode::training},
    {Part::code, "trainer.train(", Mode::training},
    {Part::code, "trainer.fit(", Mode::training},
    {Part::file, "deepspeed/runtime/zero/", Mode::training},
    {Part::file, "trl/trainer/", Mode::training},
    {Part::function, "train", Mode::training},
    {Part::code, "train()", Mode::training},
});

template <class Rules>
std::optional<ToldMode> innermost(const std::vector<Frame>& frames, const Rules& rules) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto f = allocation_site::low(*frame);
    for (const auto& r : rules)
      if (matches(r, f)) {
        const std::string file = frame->file.substr(frame->file.find_last_of("/\\") + 1);
        const std::string& what = frame->function.empty() ? frame->code : frame->function;
        return ToldMode{r.meaning, "`" + what + "`" + (file.empty() ? "" : " in " + file)};
      }
  }
  return std::nullopt;
}

}  // namespace run_mode

/// By a stack, outermost frame first, and by the phase that it was read as; nothing where neither tells.
std::optional<ToldMode> told_mode(const std::vector<Frame>& frames, RunPhase phase);

/// By the lines of a log: losses, gradient norms and loss scales are a training's, a KV cache's size a server's.
std::optional<ToldMode> told_mode(const MemorySeries& log);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/run_mode.hpp>
#endif
