// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>

/// Lines that tell what a run died of, or is slow by, without a message of an allocator.
namespace vlmest::diagnose {

enum class RunSign : std::uint8_t {
  image_beyond_cache,  ///< vLLM: a picture with more tokens than its encoder cache has
  system_memory,       ///< ollama: a model larger than what the host has available
  ray_killed,          ///< by ray's memory monitor
  killed,              ///< SIGKILL, the kernel's OOM killer, schedulers
  shared_memory,       ///< a DataLoader's /dev/shm
  data_worker_died,    ///< a DataLoader's process that ended by itself
  worker_pool_died,    ///< one of datasets' map() or of a pool
  paging_file,         ///< Windows: commit limit
  pinned_memory,       ///< page-locked memory of the host
  sleeping_engine,     ///< vLLM's allocator of a sleep mode: weights and KV cache that come back
  static_budget,       ///< SGLang: nothing is left of mem_fraction_static
  turbomind_budget,    ///< LMDeploy: cache_max_entry_count
  metal_commands,      ///< a command buffer of Metal beyond what may be wired
  compute_pool,        ///< llama.cpp: the pool of temporaries of a CUDA graph
  server_profile,      ///< vLLM's profile run
  engine_weights,      ///< an engine's model is being made
  optimizer_set_up,    ///< DeepSpeed's engine is being made
  layers_taken_back,   ///< ollama: fits that are tried with ever fewer layers
  tower_loading,       ///< llama.cpp: the text ends where the picture encoder is loaded
  ray_died,            ///< an actor whose process ended; SIGKILL is one of the reasons that ray lists
  host_killed_words,   ///< somebody says that it was the OOM killer, or the host's memory
  slow_map,            ///< datasets' map() with hours to go
  slow_loader,         ///< steps whose data_time is most of their time
  busy_model,          ///< steps whose data_time is next to nothing, beside the model's
  slow_steps_words,    ///< somebody's seconds of preprocessing within those of a step
  few_workers,         ///< Lightning: few workers for the loader
  processor_cache      ///< vLLM: a size for its cache of processed pictures
};

/// A sign found, with the figures that stand in its line.
struct FoundSign {
  RunSign sign = RunSign::killed;
  std::int64_t line = 0;
  std::string text;             ///< the line, at most 300 characters
  std::vector<double> numbers;  ///< by the sign; sizes in bytes
  std::string note;             ///< what was counted beside them, in words
};

/// What a line of its kind tells.
enum class SignTells : std::uint8_t {
  failure,   ///< that something failed, and for want of which memory
  death,     ///< that a process ended, which most do for want of the host's memory
  reasons,   ///< the same, by who lists that want among other reasons
  place,     ///< what was being made or run when a text ends: of a failure if there was one
  slowness,  ///< what takes the time of a run that goes on
  setting    ///< that something is in force which takes memory
};

struct SignTraits {
  RunSign sign;
  Cause cause;
  SignTells tells;
  bool without_torch = false;  ///< printed by a runtime that torch's settings do nothing for
};

/// By RunSign, in its order, which is that of how much a sign tells.
inline constexpr auto sign_traits = std::to_array<SignTraits>({
    {RunSign::image_beyond_cache, Cause::encoder_cache, SignTells::failure},
    {RunSign::system_memory, Cause::host_memory, SignTells::failure, true},
    {RunSign::ray_killed, Cause::host_memory, SignTells::failure},
    {RunSign::killed, Cause::host_memory, SignTells::death},
    {RunSign::shared_memory, Cause::host_memory, SignTells::failure},
    {RunSign::data_worker_died, Cause::host_memory, SignTells::death},
    {RunSign::worker_pool_died, Cause::host_memory, SignTells::death},
    {RunSign::paging_file, Cause::host_memory, SignTells::failure},
    {RunSign::pinned_memory, Cause::host_memory, SignTells::failure},
    {RunSign::sleeping_engine, Cause::engine_budget, SignTells::failure},
    {RunSign::static_budget, Cause::engine_budget, SignTells::failure},
    {RunSign::turbomind_budget, Cause::engine_budget, SignTells::failure, true},
    {RunSign::metal_commands, Cause::engine_budget, SignTells::failure, true},
    {RunSign::compute_pool, Cause::activations, SignTells::failure, true},
    {RunSign::server_profile, Cause::profile_run, SignTells::place},
    {RunSign::engine_weights, Cause::weights, SignTells::place},
    {RunSign::optimizer_set_up, Cause::optimizer_state, SignTells::place},
    {RunSign::layers_taken_back, Cause::kv_cache, SignTells::setting, true},
    {RunSign::tower_loading, Cause::vision_tiles, SignTells::setting, true},
    {RunSign::ray_died, Cause::host_memory, SignTells::reasons},
    {RunSign::host_killed_words, Cause::host_memory, SignTells::failure},
    {RunSign::slow_map, Cause::slow_data, SignTells::slowness},
    {RunSign::slow_loader, Cause::slow_data, SignTells::slowness},
    {RunSign::busy_model, Cause::compute_bound, SignTells::slowness},
    {RunSign::slow_steps_words, Cause::slow_data, SignTells::slowness},
    {RunSign::few_workers, Cause::slow_data, SignTells::slowness},
    {RunSign::processor_cache, Cause::host_memory, SignTells::setting},
});
constexpr const SignTraits& traits(RunSign s) { return sign_traits[static_cast<std::size_t>(s)]; }
static_assert([] {
  for (std::size_t i = 0; i < sign_traits.size(); ++i)
    if (sign_traits[i].sign != static_cast<RunSign>(i)) return false;
  return sign_traits.size() == static_cast<std::size_t>(RunSign::processor_cache) + 1;
}());

constexpr Cause cause_of(RunSign s) { return traits(s).cause; }
constexpr bool tells_failure(RunSign s) {
  const SignTells t = traits(s).tells;
  return t == SignTells::failure || t == SignTells::death || t == SignTells::reasons;
}

}  // namespace vlmest::diagnose
