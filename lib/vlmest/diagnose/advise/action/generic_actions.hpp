// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/advise/action/catalogue.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// What helps against a cause in general, where no model is given or nothing can be estimated: actions of the catalogue
/// without a figure.
namespace vlmest::diagnose {

/// Whose settings act: torch's with transformers' and peft's, an engine's that serves (vLLM and SGLang, on torch), or
/// those of a runtime without torch (MLX, llama.cpp and ollama, TurboMind).
enum class Platform : std::uint8_t { torch, engine, other };

Platform platform_of(const Failure& f);
/// The same where the frames tell nothing, but the cause is one that only engines have.
Platform platform_for(Cause cause, const Failure& f);

/// Settings of a run that are known without its model: their actions are left out where they are in force.
struct KnownSettings {
  std::optional<Mode> mode;
  const Plan* plan = nullptr;  ///< what flags say; null: nothing
  Gpu gpu{};                   ///< that it ran on, an H200 where that is not known
};

namespace generic_actions {

/// Actions of the catalogue, in the order in which they are offered.
struct Ids {
  std::array<ActionId, 10> all{};
  std::size_t count = 0;
  template <class... Names>
  consteval Ids(Names... names) : all{action_id(names)...}, count(sizeof...(names)) {}
  constexpr auto begin() const { return all.begin(); }
  constexpr auto end() const { return all.begin() + static_cast<std::ptrdiff_t>(count); }
};

/// Of a cause: what acts on it, the surest first; of equal ones what people of tests/data/corpus (the open files) say
/// helped most often.
struct Of {
  Cause cause;
  Ids ids;
};
inline constexpr auto by_cause = std::to_array<Of>({
    {Cause::weights, {"weights-nf4", "weights-int8", "zero-3", "qlora", "weights-bf16", "offload-parameters"}},
    {Cause::optimizer_state, {"zero-3", "offload-optimizer", "lora-16", "optimizer-8bit", "qlora", "zero-1"}},
    {Cause::gradients, {"lora-16", "qlora", "zero-2", "zero-3", "freeze-vision"}},
    {Cause::activations,
     {"checkpointing-full", "smaller-images", "smaller-micro-batch", "smaller-batch", "fewer-images", "shorter-seq"}},
    {Cause::attention_scores,
     {"attention-flash", "smaller-images", "attention-sdpa", "fewer-images", "vision-chunks", "shorter-seq"}},
    {Cause::logits, {"loss-chunked", "logits-last", "shorter-seq", "smaller-micro-batch", "smaller-batch"}},
    {Cause::kv_cache, {"engine-share", "kv-fp8", "shorter-seq", "smaller-batch", "weights-nf4", "fewer-images"}},
    {Cause::vision_tiles,
     {"smaller-images", "fewer-images", "vision-chunks", "freeze-vision", "checkpointing-vision",
      "smaller-micro-batch"}},
    {Cause::profile_run, {"fewer-images", "smaller-images", "smaller-batch", "shorter-seq"}},
    {Cause::engine_budget,
     {"engine-headroom", "smaller-images", "smaller-batch", "shorter-seq", "kv-fp8", "offload-optimizer",
      "weights-nf4"}},
    {Cause::encoder_cache, {"smaller-images", "fewer-images"}},
    {Cause::fragmentation, {"allocator-expandable"}},
    {Cause::leak, {"let-go"}},
    {Cause::other_process, {"free-the-gpu"}},
    {Cause::unknown,
     {"checkpointing-full", "smaller-images", "fewer-images", "shorter-seq", "smaller-micro-batch", "smaller-batch",
      "optimizer-8bit", "lora-16", "weights-nf4", "offload-parameters"}},
});

}  // namespace generic_actions

/// One of them as that platform takes it; nothing where it has no such setting.
std::optional<Action> generic_action(ActionId id, Platform platform);

/// The actions against the verdict's cause that are not in force and act on the platform. Without a mode those of both,
/// each with `of` where it is of one alone.
std::vector<Action> generic_actions_of(const Verdict& v, const Failure& f, const KnownSettings& known);

/// Whether an estimated action acts on the platform at all, with how it is taken there: torch's settings do nothing for
/// MLX, ggml or TurboMind.
bool adapt(Action& a, const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/generic_actions.hpp>
#endif
