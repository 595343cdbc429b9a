// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <vlmest/diagnose/oom/cause_remedies.hpp>
#include <vlmest/diagnose/oom/sign_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace sign_verdict {

inline void add(std::vector<Action>& to, const char* id, const char* title, std::string how,
                Loses loses = Loses::nothing) {
  to.push_back({.id = id, .title = title, .fits_known = false, .how = std::move(how), .loses = loses});
}

}  // namespace sign_verdict

VLMEST_INLINE std::vector<Action> cause_remedies(const Verdict& v, const std::vector<FoundSign>& signs) {
  using namespace sign_verdict;
  std::vector<Action> r;
  const auto found = [&](RunSign s) -> const FoundSign* {
    for (const FoundSign& f : signs)
      if (f.sign == s) return &f;
    return nullptr;
  };
  switch (v.cause) {
    case Cause::host_memory:
      if (found(RunSign::shared_memory))
        add(r, "shared-memory", "a larger /dev/shm for the loader's workers",
            "docker run --shm-size=16g ... or --ipc=host; without a container: mount -o remount,size=16g /dev/shm");
      if (found(RunSign::processor_cache) || found(RunSign::ray_died))
        add(r, "processor-cache", "no cache of processed pictures in the host's memory",
            "vllm serve ... --mm-processor-cache-gb 0  # before 0.10: --disable-mm-preprocessor-cache");
      if (found(RunSign::system_memory)) {
        add(r, "shorter-context", "less context, whose KV cache lies in the host's memory too",
            "ollama run MODEL, then /set parameter num_ctx 4096");
        add(r, "smaller-weights", "the same model in fewer bits, or a smaller one", "ollama pull MODEL:...-q4_K_M",
            Loses::quality);
      }
      add(r, "fewer-workers", "fewer processes that each hold what the data set keeps",
          "DataLoader(..., num_workers=2, prefetch_factor=2, persistent_workers=False); datasets.map(num_proc=2, "
          "writer_batch_size=50, batch_size=50)");
      add(r, "stream-data", "read samples as they are needed, not all of them before the first step",
          "load_dataset(..., streaming=True)  # LLaMA-Factory: streaming: true; ms-swift: --streaming true");
      add(r, "more-host-memory", "more memory for the job",
          "srun --mem=0; docker run --memory=...; Kubernetes: resources.limits.memory  # look: dmesg | grep -i oom, "
          "sacct -j JOB -o MaxRSS, free -h");
      add(r, "load-once", "weights mapped from their file, once",
          "from_pretrained(..., low_cpu_mem_usage=True) with safetensors; DeepSpeed: no offload_param to \"cpu\" where "
          "the host has less than 16 bytes a parameter");
      if (found(RunSign::ray_killed))
        add(r, "ray-threshold", "ray's monitor kills later", "RAY_memory_usage_threshold=0.98 ray start ...");
      break;
    case Cause::encoder_cache: {
      const FoundSign* f = found(RunSign::image_beyond_cache);
      std::string least = "16384";
      if (f != nullptr && f->numbers.size() == 2) least = whole(std::ceil(f->numbers[0] / 1024) * 1024);
      add(r, "encoder-cache", "an encoder cache that holds the picture",
          "vllm serve ... --max-num-batched-tokens " + least);
      std::string share = "fewer";
      if (f != nullptr && f->numbers.size() == 2 && f->numbers[0] > 0)
        share = "at most " + whole(std::floor(100 * f->numbers[1] / f->numbers[0])) + " % of its";
      add(r, "smaller-images", "a picture of fewer pixels",
          "resize it to " + share + " pixels, or --mm-processor-kwargs '{\"max_pixels\": ...}'", Loses::quality);
      break;
    }
    case Cause::profile_run:
      add(r, "limit-images", "fewer pictures in a request", "--limit-mm-per-prompt '{\"image\": 1, \"video\": 0}'");
      add(r, "smaller-images", "pictures of fewer pixels", "--mm-processor-kwargs '{\"max_pixels\": 1003520}'",
          Loses::quality);
      add(r, "fewer-sequences", "fewer requests and tokens at once",
          "--max-num-seqs 16 --max-num-batched-tokens 8192 --max-model-len 8192");
      add(r, "tensor-parallel", "the model over more GPUs", "--tensor-parallel-size 2");
      break;
    case Cause::engine_budget:
      if (found(RunSign::sleeping_engine) || found(RunSign::engine_weights)) {
        add(r, "engine-share", "less of the device for the engine beside training",
            "gpu_memory_utilization=0.5  # verl: actor_rollout_ref.rollout.gpu_memory_utilization=0.5; TRL: "
            "vllm_gpu_memory_utilization=0.3");
        add(r, "empty-cache", "give training's cached memory back before the engine wakes up",
            "torch.cuda.empty_cache()");
        add(r, "tensor-parallel", "the engine over more GPUs",
            "tensor_parallel_size=2  # verl: actor_rollout_ref.rollout.tensor_model_parallel_size=2");
      }
      if (found(RunSign::static_budget)) {
        add(r, "engine-share", "a larger share for weights and KV cache", "--mem-fraction-static 0.9");
        add(r, "tensor-parallel", "the model over more GPUs", "--tp 2");
        add(r, "shorter-context", "a shorter context", "--context-length 8192");
      }
      if (found(RunSign::turbomind_budget))
        add(r, "engine-share", "a smaller share of the free memory for the KV cache",
            "TurbomindEngineConfig(cache_max_entry_count=0.2, session_len=8192)  # --cache-max-entry-count 0.2");
      if (found(RunSign::metal_commands)) {
        add(r, "engine-share", "a smaller cache of the engine beside the weights", "its cache's share or block count");
        add(r, "wired-limit", "more memory that Metal may keep wired", "sudo sysctl iogpu.wired_limit_mb=...");
        add(r, "smaller-weights", "weights in fewer bits", "a checkpoint of 4 bits", Loses::quality);
      }
      break;
    case Cause::slow_data:
      add(r, "fast-processor", "the processor in torch or Rust", "AutoProcessor.from_pretrained(..., use_fast=True)");
      add(r, "load-ahead", "preprocess in workers, ahead of the step",
          "DataLoader(..., num_workers=8, prefetch_factor=4, pin_memory=True, persistent_workers=True), the processor "
          "in "
          "its collate_fn");
      add(r, "stream-data", "preprocess while training, not before",
          "load_dataset(..., streaming=True)  # LLaMA-Factory: streaming: true; ms-swift: --lazy_tokenize true");
      add(r, "prepared-data", "preprocess once and keep it",
          "save_to_disk() of the mapped data set; LLaMA-Factory: "
          "tokenized_path");
      break;
    case Cause::kv_cache:
      if (found(RunSign::layers_taken_back)) {
        add(r, "shorter-context", "a shorter context", "OLLAMA_CONTEXT_LENGTH=8192, or PARAMETER num_ctx 8192");
        add(r, "attention-flash", "attention without its scores", "OLLAMA_FLASH_ATTENTION=1");
        add(r, "kv-cache-q8", "the KV cache in 8 bits", "OLLAMA_KV_CACHE_TYPE=q8_0", Loses::quality);
      }
      break;
    case Cause::activations:
    case Cause::vision_tiles:
      if (found(RunSign::compute_pool))
        add(r, "smaller-batches", "fewer tokens computed at once",
            "llama.cpp: -ub 128 -b 512; ollama: PARAMETER num_batch 128");
      if (found(RunSign::tower_loading) || found(RunSign::compute_pool))
        add(r, "fewer-gpu-layers", "fewer layers on the GPU, so that the picture encoder fits beside them",
            "PARAMETER num_gpu N below the count of offloaded layers; llama.cpp: -ngl N, or --no-mmproj-offload");
      break;
    case Cause::optimizer_state:
      if (found(RunSign::optimizer_set_up)) {
        add(r, "offload-optimizer", "optimizer states in host memory",
            "\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}}");
        add(r, "lora-16", "adapters of rank 16 are trained, nothing else",
            "get_peft_model(model, LoraConfig(r=16, target_modules=\"all-linear\"))", Loses::quality);
        add(r, "optimizer-8bit", "the optimizer's moments in 8 bits", "TrainingArguments(optim=\"adamw_bnb_8bit\")",
            Loses::quality);
      }
      break;
    default: break;
  }
  return r;
}

}  // namespace vlmest::diagnose
