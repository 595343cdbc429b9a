// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/text/run_sign.hpp>

/// What helps against what the lines of a text tell of, whatever model it is.
namespace vlmest::diagnose {
namespace sign_rows {

constexpr std::uint32_t bit(RunSign s) { return std::uint32_t{1} << static_cast<unsigned>(s); }
static_assert(sign_traits.size() <= 32);

/// Of the verdict's cause, and where any of `signs` was found; 0: whatever was found. A row without a title is one of
/// the generic actions (generic_actions.hpp), which the sign puts before the others.
struct Row {
  Cause cause;
  std::uint32_t signs;
  std::string_view name, title = {}, how = {};
  Loses loses = Loses::nothing;
};

/// Of a picture that is larger than the cache, with the lines that its figures ask for (sign_actions.hpp).
inline constexpr std::string_view encoder_cache = "encoder-cache";

inline constexpr std::string_view fewer_layers =
    "fewer layers on the GPU, so that the picture encoder fits beside them";
inline constexpr std::string_view num_gpu =
    "PARAMETER num_gpu N below the count of offloaded layers; llama.cpp: -ngl N, or --no-mmproj-offload";
inline constexpr std::string_view rollout_ranks =
    "tensor_parallel_size=2  # verl: actor_rollout_ref.rollout.tensor_model_parallel_size=2";

/// The surest first. Arguments: torch.utils.data, datasets, transformers' from_pretrained, vLLM (engine/arg_utils.py),
/// SGLang (server_args.py), verl and TRL (their configs), lmdeploy (messages.py), ray's environment, ollama's envconfig
/// and Modelfile, llama.cpp's common/arg.cpp.
inline constexpr auto rows = std::to_array<Row>({
    {Cause::host_memory, bit(RunSign::shared_memory) | bit(RunSign::data_worker_died), "shared-memory",
     "a larger /dev/shm for the loader's workers",
     "docker run --shm-size=16g ... or --ipc=host; without a container: mount -o remount,size=16g /dev/shm"},
    {Cause::host_memory, bit(RunSign::processor_cache) | bit(RunSign::ray_died), "processor-cache",
     "no cache of processed pictures in the host's memory",
     "vllm serve ... --mm-processor-cache-gb 0  # before 0.10: --disable-mm-preprocessor-cache"},
    {Cause::host_memory, bit(RunSign::system_memory), "shorter-seq"},
    {Cause::host_memory, bit(RunSign::system_memory), "weights-nf4"},
    {Cause::host_memory, 0, "fewer-workers", "fewer processes that each hold what the data set keeps",
     "DataLoader(..., num_workers=2, prefetch_factor=2, persistent_workers=False); datasets.map(num_proc=2, "
     "writer_batch_size=50, batch_size=50)"},
    {Cause::host_memory, 0, "stream-data", "read samples as they are needed, not all of them before the first step",
     "load_dataset(..., streaming=True)  # LLaMA-Factory: streaming: true; ms-swift: --streaming true"},
    {Cause::host_memory, 0, "more-host-memory", "more memory for the job",
     "srun --mem=0; docker run --memory=...; Kubernetes: resources.limits.memory  # look: dmesg | grep -i oom, "
     "sacct -j JOB -o MaxRSS, free -h"},
    {Cause::host_memory, 0, "load-once", "weights mapped from their file, once",
     "from_pretrained(..., low_cpu_mem_usage=True) with safetensors; DeepSpeed: no offload_param to \"cpu\" where the "
     "host has less than 16 bytes a parameter"},
    {Cause::host_memory, bit(RunSign::ray_killed), "ray-threshold", "ray's monitor kills later",
     "RAY_memory_usage_threshold=0.98 ray start ..."},

    {Cause::profile_run, 0, "fewer-images"},
    {Cause::profile_run, 0, "smaller-images"},
    {Cause::profile_run, 0, "fewer-sequences", "fewer requests and tokens at once",
     "--max-num-seqs 16 --max-num-batched-tokens 8192 --max-model-len 8192"},
    {Cause::profile_run, 0, "tensor-parallel", "the model over more GPUs", "--tensor-parallel-size 2"},

    {Cause::engine_budget, bit(RunSign::engine_weights), "tensor-parallel", "the engine over more GPUs", rollout_ranks},
    {Cause::engine_budget, bit(RunSign::engine_weights), "offload-trainer",
     "the trained model's states in the host's memory while the engine has the GPU",
     "verl: actor_rollout_ref.actor.fsdp_config.param_offload=True and optimizer_offload=True"},
    {Cause::engine_budget, bit(RunSign::sleeping_engine), "engine-share",
     "less of the device for the engine beside training",
     "gpu_memory_utilization=0.5  # verl: actor_rollout_ref.rollout.gpu_memory_utilization=0.5; TRL: "
     "vllm_gpu_memory_utilization=0.3"},
    {Cause::engine_budget, bit(RunSign::sleeping_engine) | bit(RunSign::engine_weights), "empty-cache",
     "give training's cached memory back before the engine wakes up", "torch.cuda.empty_cache()"},
    {Cause::engine_budget, bit(RunSign::sleeping_engine), "tensor-parallel", "the engine over more GPUs",
     rollout_ranks},
    {Cause::engine_budget, bit(RunSign::static_budget), "engine-share", "a larger share for weights and KV cache",
     "--mem-fraction-static 0.9"},
    {Cause::engine_budget, bit(RunSign::static_budget), "tensor-parallel", "the model over more GPUs", "--tp 2"},
    {Cause::engine_budget, bit(RunSign::static_budget), "shorter-seq"},
    {Cause::engine_budget, bit(RunSign::turbomind_budget), "engine-share",
     "a smaller share of the free memory for the KV cache",
     "TurbomindEngineConfig(cache_max_entry_count=0.2, session_len=8192)  # --cache-max-entry-count 0.2"},
    {Cause::engine_budget, bit(RunSign::metal_commands), "engine-share",
     "a smaller cache of the engine beside the weights", "its cache's share or block count"},
    {Cause::engine_budget, bit(RunSign::metal_commands), "wired-limit", "more memory that Metal may keep wired",
     "sudo sysctl iogpu.wired_limit_mb=..."},
    {Cause::engine_budget, bit(RunSign::metal_commands), "weights-nf4"},

    {Cause::slow_data, 0, "fast-processor", "the processor in torch or Rust",
     "AutoProcessor.from_pretrained(..., use_fast=True)"},
    {Cause::slow_data, 0, "load-ahead", "preprocess in workers, ahead of the step",
     "DataLoader(..., num_workers=8, prefetch_factor=4, pin_memory=True, persistent_workers=True), the processor in "
     "its "
     "collate_fn"},
    {Cause::slow_data, 0, "stream-data", "preprocess while training, not before",
     "load_dataset(..., streaming=True)  # LLaMA-Factory: streaming: true; ms-swift: --lazy_tokenize true"},
    {Cause::slow_data, 0, "prepared-data", "preprocess once and keep it",
     "save_to_disk() of the mapped data set; LLaMA-Factory: tokenized_path"},

    {Cause::compute_bound, bit(RunSign::busy_model), "trace-a-step", "see what in a step takes its time",
     "with torch.profiler.profile() as p: step(); p.export_chrome_trace(\"trace.json\")  # vlmest diagnose trace.json"},
    {Cause::compute_bound, bit(RunSign::busy_model), "smaller-images"},
    {Cause::compute_bound, bit(RunSign::busy_model), "fewer-images"},

    {Cause::kv_cache, bit(RunSign::layers_taken_back), "shorter-seq"},
    {Cause::kv_cache, bit(RunSign::layers_taken_back), "attention-flash"},

    {Cause::activations, bit(RunSign::compute_pool), "smaller-batches", "fewer tokens computed at once",
     "llama.cpp: -ub 128 -b 512; ollama: PARAMETER num_batch 128"},
    {Cause::activations, bit(RunSign::compute_pool), "fewer-gpu-layers", fewer_layers, num_gpu},
    {Cause::vision_tiles, bit(RunSign::tower_loading), "fewer-gpu-layers", fewer_layers, num_gpu},

    {Cause::optimizer_state, bit(RunSign::optimizer_set_up), "offload-optimizer"},
});

}  // namespace sign_rows

}  // namespace vlmest::diagnose
