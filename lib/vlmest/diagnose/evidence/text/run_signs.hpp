// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/run_sign.hpp>

namespace vlmest::diagnose {

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
    {"[torch_memory_saver.cpp]", RunSign::sleeping_engine},                    // its csrc/core.cpp, of SGLang
    {"Please try to increase --mem-fraction-static", RunSign::static_budget},  // sglang model_executor/model_runner.py
    {"Not enough memory", RunSign::static_budget, "sglang/srt"},
    {"cache_max_entry_count=", RunSign::turbomind_budget, "out of memory"},  // lmdeploy messages.py
    {"cache-max-entry-count", RunSign::turbomind_budget, "out of memory"},
    {"No enough blocks", RunSign::turbomind_budget},
    {"Command buffer execution failed: Insufficient Memory", RunSign::metal_commands},  // mlx backend/metal
    {"kIOGPUCommandBufferCallbackErrorOutOfMemory", RunSign::metal_commands},
    {"g_cuda_pool", RunSign::compute_pool},  // ggml/src/ggml-cuda/ggml-cuda.cu, ggml_cuda_pool_vmm::alloc
    {"ggml_cuda_pool", RunSign::compute_pool},
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

}  // namespace run_signs

/// The signs of a text, each kind once, with the line that says most of it; the surest kind first, which is the order
/// of RunSign. Of a text of more than 16 MiB the last are read.
std::vector<FoundSign> find_run_signs(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/run_signs.hpp>
#endif
