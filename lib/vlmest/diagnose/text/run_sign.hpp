// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/diagnose/cause.hpp>

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

/// Whether a sign tells of a failure by itself. The others are of a run of which nothing is said to have failed, or of
/// what it was doing when something did.
constexpr bool tells_failure(RunSign s) {
  return s <= RunSign::compute_pool || s == RunSign::ray_died || s == RunSign::host_killed_words;
}
constexpr bool tells_slowness(RunSign s) { return s >= RunSign::slow_map && s <= RunSign::few_workers; }

}  // namespace vlmest::diagnose
