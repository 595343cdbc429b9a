// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/cause.hpp>
#include <vlmest/diagnose/text/printed_size.hpp>

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

namespace run_signs {

struct Words {
  std::string_view words;
  RunSign sign;
  std::string_view also = {};  ///< must stand somewhere in the text as well
};

/// Words as the programs named behind them print them.
inline constexpr auto sign_words = std::to_array<Words>({
    {"exceeds the pre-allocated encoder cache size", RunSign::image_beyond_cache},  // vllm/v1/engine/processor.py
    {"requires more system memory", RunSign::system_memory},                        // ollama llm/server.go
    {"exceeds the memory usage threshold of", RunSign::ray_killed},  // ray src/ray/raylet/node_manager.cc
    {"killed due to memory pressure (OOM)", RunSign::ray_killed},
    {"due to the node running low on memory", RunSign::ray_killed},
    {"ray-oom-prevention", RunSign::ray_killed},
    {"Signal 9 (SIGKILL)", RunSign::killed},  // torch/distributed/elastic/multiprocessing/errors
    {"SIGKILL: 9", RunSign::killed},          // subprocess.CalledProcessError
    {"exitcode: -9", RunSign::killed},        // torch/distributed/elastic/multiprocessing/api.py
    {"exitcode  : -9", RunSign::killed},
    {"exit code: -9", RunSign::killed},
    {"return code = -9", RunSign::killed},  // deepspeed/launcher/launch.py
    {"return code is -9", RunSign::killed},
    {"returned -9", RunSign::killed},
    {"exit code 137", RunSign::killed},  // docker, Kubernetes
    {"exited with code 137", RunSign::killed},
    {"exit status 137", RunSign::killed},
    {"Exit Code:    137", RunSign::killed},
    {"is killed by signal: Killed", RunSign::killed},  // torch/utils/data/_utils/signal_handling.py
    {"signal: killed", RunSign::killed},               // Go's os/exec: ollama, containers
    {"invoked oom-killer", RunSign::killed},           // linux mm/oom_kill.c
    {"Out of memory: Kill", RunSign::killed},
    {"Memory cgroup out of memory", RunSign::killed},
    {"oom_reaper:", RunSign::killed},
    {"oom-kill:constraint", RunSign::killed},
    {"OOMKilled", RunSign::killed},
    {"oom_kill event", RunSign::killed},  // Slurm
    {"oom-kill event", RunSign::killed},
    {"Exceeded job memory limit", RunSign::killed},
    {"killed by signal: Bus error", RunSign::shared_memory},  // torch/csrc/DataLoader.cpp and dataloader.py
    {"insufficient shared memory", RunSign::shared_memory},
    {"out of shared memory. Please try to raise", RunSign::shared_memory},
    {"unable to write to file </torch_", RunSign::shared_memory},  // aten/src/ATen/MapAllocator.cpp
    {"unable to allocate shared memory(shm) for file", RunSign::shared_memory},
    {"unable to open shared memory object", RunSign::shared_memory},
    {"Error while creating shared memory segment", RunSign::shared_memory},  // NCCL src/misc/shmutils.cc
    {"No space left on device", RunSign::shared_memory, "/dev/shm"},
    {"DataLoader worker (pid(s)", RunSign::data_worker_died},  // torch/utils/data/dataloader.py, _try_get_data
    {"DataLoader worker exited unexpectedly", RunSign::data_worker_died},
    {"of the subprocesses has abruptly died during map", RunSign::worker_pool_died},  // datasets/utils/py_utils.py
    {"process pool was terminated abruptly", RunSign::worker_pool_died},              // concurrent/futures/process.py
    {"excessive memory usage causing the Operating System", RunSign::worker_pool_died},  // joblib's loky
    {"paging file is too small", RunSign::paging_file},  // Windows' ERROR_COMMITMENT_LIMIT, os error 1455
    {"os error 1455", RunSign::paging_file},
    {"CachingHostAllocator", RunSign::pinned_memory},  // aten/src/ATen/cuda/CachingHostAllocator.cpp
    {"cudaHostAlloc", RunSign::pinned_memory},
    {"cudaHostRegister", RunSign::pinned_memory},
    {"cudaMallocHost", RunSign::pinned_memory},
    {"cumem_allocator.cpp", RunSign::sleeping_engine},                         // vllm csrc/cumem_allocator.cpp
    {"Please try to increase --mem-fraction-static", RunSign::static_budget},  // sglang model_executor/model_runner.py
    {"Not enough memory", RunSign::static_budget, "sglang/srt"},
    {"cache_max_entry_count", RunSign::turbomind_budget, "out of memory"},  // lmdeploy messages.py
    {"cache-max-entry-count", RunSign::turbomind_budget, "out of memory"},
    {"No enough blocks", RunSign::turbomind_budget},
    {"Command buffer execution failed: Insufficient Memory", RunSign::metal_commands},  // mlx backend/metal
    {"kIOGPUCommandBufferCallbackErrorOutOfMemory", RunSign::metal_commands},
    {"Starting profile run for multi-modal models", RunSign::server_profile},  // vllm worker/enc_dec_model_runner.py
    {"while processing method determine_num_available_blocks", RunSign::server_profile},
    {"is too short to hold the multi-modal embeddings", RunSign::server_profile},  // vllm/multimodal/profiling.py
    {"in determine_num_available_blocks", RunSign::server_profile},
    {"in determine_available_memory", RunSign::server_profile},
    {"in profile_run", RunSign::server_profile},
    {"in _initialize_kv_caches", RunSign::server_profile},
    {"in make_layers", RunSign::engine_weights, "/model_executor/models/"},  // vllm model_executor/models/utils.py
    {"in initialize_model", RunSign::engine_weights, "/model_executor/"},    // vllm model_executor/model_loader
    {"in ds_initialize", RunSign::optimizer_set_up},
    {"ds_initialize(", RunSign::optimizer_set_up},                // accelerate/accelerator.py, _prepare_deepspeed
    {"in _configure_zero_optimizer", RunSign::optimizer_set_up},  // deepspeed/runtime/engine.py
    {"unexpectedly exits with a connection error code 2", RunSign::ray_died},  // ray src/ray/core_worker
    {"killed by SIGKILL by OOM killer", RunSign::ray_died},
    {"OOM-killed", RunSign::host_killed_words},
    {"OOM killed", RunSign::host_killed_words},
    {"oom-killed", RunSign::host_killed_words},
    {"OOM killer", RunSign::host_killed_words},
    {"CPU OOM", RunSign::host_killed_words},
    {"out of CPU memory", RunSign::host_killed_words},
    {"CPU out of memory", RunSign::host_killed_words},
    {"out of host memory", RunSign::host_killed_words},
    {"out of system memory", RunSign::host_killed_words},
    {"run out of RAM", RunSign::host_killed_words},
    {"out of RAM", RunSign::host_killed_words},
    {"RAM OOM", RunSign::host_killed_words},
    {"worker killed", RunSign::host_killed_words},
    {"does not have many workers which may be a bottleneck", RunSign::few_workers},  // lightning data_connector.py
    {"VLLM_MM_INPUT_CACHE_GIB", RunSign::processor_cache},                           // vllm/envs.py
    {"disable_mm_preprocessor_cache", RunSign::processor_cache},                     // vllm/engine/arg_utils.py
    {"disable-mm-preprocessor-cache", RunSign::processor_cache},
});

/// "Killed", alone, behind a shell's or a bar's words, or quoted: "run.sh: line 28:  8156 Killed  python x.py",
/// "| 3/4 [01:34<00:31, 31.54s/it]Killed", "> Killed".
bool is_killed_line(std::string_view line);

}  // namespace run_signs

/// The signs of a text, each kind once, with the line that says most of it; the surest kind first, which is the order
/// of RunSign. Of a text of more than 16 MiB the last are read.
std::vector<FoundSign> find_run_signs(std::string_view text);

/// What a sign is of.
Cause cause_of(RunSign s);

/// Whether a sign tells of a failure by itself. The others are of a run of which nothing is said to have failed, or of
/// what it was doing when something did.
constexpr bool tells_failure(RunSign s) {
  return s <= RunSign::metal_commands || s == RunSign::ray_died || s == RunSign::host_killed_words;
}
constexpr bool tells_slowness(RunSign s) { return s >= RunSign::slow_map && s <= RunSign::few_workers; }

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/text/impl/run_signs.hpp>
#endif
