// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <vlmest/diagnose/oom/elsewhere.hpp>
#include <vlmest/diagnose/oom/oom_rules.hpp>
#include <vlmest/diagnose/oom/sign_verdict.hpp>
#include <vlmest/diagnose/text/words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace sign_verdict {

inline std::string whole(double v) { return std::to_string(static_cast<std::int64_t>(std::llround(v))); }
inline std::string size(double v) { return in_words(Bytes(static_cast<std::int64_t>(v))); }
inline std::string seconds(double v) {
  std::string s = whole(10 * v);
  if (s.size() < 2) s.insert(0, "0");
  return s.insert(s.size() - 1, ".") + " s";
}

inline double confidence(RunSign s) {
  switch (s) {
    case RunSign::image_beyond_cache:
    case RunSign::system_memory: return 0.95;
    case RunSign::ray_killed:
    case RunSign::shared_memory: return 0.9;
    case RunSign::killed:
    case RunSign::sleeping_engine:
    case RunSign::static_budget: return 0.8;
    case RunSign::host_killed_words:
    case RunSign::paging_file:
    case RunSign::slow_loader: return 0.7;
    case RunSign::data_worker_died:
    case RunSign::worker_pool_died:
    case RunSign::pinned_memory:
    case RunSign::turbomind_budget:
    case RunSign::server_profile:
    case RunSign::slow_map:
    case RunSign::ray_died: return 0.6;
    case RunSign::processor_cache: return 0.3;
    default: return 0.5;
  }
}

inline std::string of_facts(const std::vector<LogFact>& facts) {
  std::string r;
  for (const auto& [name, words] : {std::pair<std::string_view, const char*>{"weights", "the weights take "},
                                    {"activation_peak", "the peak of the activations "},
                                    {"non_torch", "what is not torch's "},
                                    {"kv_cache", "left for the KV cache "},
                                    {"compute_buffer", "a compute buffer "}})
    if (const auto bytes = elsewhere::fact(facts, name))
      r += (r.empty() ? " By the log " : ", ") + (words + in_words(*bytes));
  return r.empty() ? r : r + ".";
}

inline std::string words_of(const FoundSign& f, const std::vector<LogFact>& facts) {
  const auto& n = f.numbers;
  switch (f.sign) {
    case RunSign::image_beyond_cache:
      return n.size() < 2 ? "a picture has more tokens than the engine's encoder cache"
                          : "a picture of " + whole(n[0]) + " tokens is larger than the engine's encoder cache of " +
                                whole(n[1]) +
                                " tokens, which is as large as one step's tokens (--max-num-batched-tokens) or the "
                                "largest picture that the processor was expected to make";
    case RunSign::system_memory:
      return n.size() < 2 ? "the model is larger than the host's free memory"
                          : "the model needs " + size(n[0]) + " of the host's memory, and " + size(n[1]) +
                                " are available: " + size(std::max(0.0, n[0] - n[1])) + " are missing";
    case RunSign::ray_killed: {
      std::string r = "ray killed a worker because the host's memory ran out";
      if (n.size() >= 2 && n[0] > 0) r += ": " + size(n[0]) + " of " + size(n[1]) + " were used, beyond its threshold";
      if (n.size() >= 5 && n[3] > 0) r += "; the " + whole(n[3]) + " processes that it lists hold " + size(n[4]);
      return r;
    }
    case RunSign::killed:
      return "the process was killed by signal 9: where nobody did it by hand, the kernel or the scheduler did, "
             "because "
             "the host's memory ran out";
    case RunSign::shared_memory:
      return "the shared memory of the DataLoader's workers (/dev/shm) is full: batches pass through it on their way "
             "from "
             "the workers";
    case RunSign::data_worker_died:
      return "a worker of the DataLoader ended without an exception, as one does that the kernel kills for the host's "
             "memory, or whose /dev/shm is full";
    case RunSign::worker_pool_died:
      return "a process of a pool ended without an exception, as one does that the kernel kills for the host's memory";
    case RunSign::paging_file:
      return "Windows refused to commit memory: RAM and the paging file together are too small";
    case RunSign::pinned_memory: return "page-locked memory of the host could not be had";
    case RunSign::sleeping_engine:
      return "the allocator of vLLM's sleep mode could not map memory: the engine that wakes up takes its weights and "
             "its "
             "KV cache again, beside what training holds by then";
    case RunSign::static_budget:
      return "nothing is left for the KV cache of the share of the device that the engine may take "
             "(mem_fraction_static)";
    case RunSign::turbomind_budget:
      return "the KV cache takes its share of the free memory (cache_max_entry_count, 0.8 if not given), and what is "
             "left "
             "does not hold the run";
    case RunSign::metal_commands:
      return "Metal could not run a command buffer within what it may keep wired: weights, the engine's cache and the "
             "temporaries are together beyond the working set that it recommends";
    case RunSign::server_profile:
      return "the engine was in its profile run, over the largest inputs that its settings admit (as many pictures of "
             "the "
             "greatest size as max_num_seqs, max_num_batched_tokens and limit_mm_per_prompt allow)";
    case RunSign::engine_weights: return "the engine was making its model: its weights do not fit";
    case RunSign::optimizer_set_up:
      return "DeepSpeed was setting up its engine, where it makes fp32 copies of the weights and the optimizer's "
             "states";
    case RunSign::layers_taken_back:
      return n.size() < 3 ? "the server takes layers back from the GPU"
                          : "the server was fitting a context of " + whole(n[0]) +
                                " tokens and took layers back from the "
                                "GPU, from " +
                                whole(n[1]) + " to " + whole(n[2]) +
                                ": its KV cache and its attention over that context grow with it";
    case RunSign::tower_loading:
      return "the text ends where the picture encoder is loaded: its weights and its graph come beside the layers that "
             "are on the GPU already";
    case RunSign::ray_died:
      return "a worker of ray ended without an exception; the first reason that ray names is the kernel's OOM killer";
    case RunSign::host_killed_words: return "the text says that the host's memory ran out";
    case RunSign::slow_map:
      return n.size() < 2 ? "the data set is prepared before the first step"
                          : "the data set is prepared before the first step, with " +
                                seconds(n[0] / 3600).substr(0, seconds(n[0] / 3600).size() - 2) + " hours to go at " +
                                whole(n[1]) + " examples a second" +
                                (n.size() > 2 && n[2] > 0
                                     ? " of " + whole(n[2]) + " processes, " +
                                           seconds(n[1] / n[2]).substr(0, seconds(n[1] / n[2]).size() - 2) + " each"
                                     : "");
    case RunSign::slow_loader:
      return n.size() < 2 ? "steps wait for data"
                          : "steps wait " + seconds(n[0]) + " of " + seconds(n[1]) + " for their data";
    case RunSign::slow_steps_words:
      return n.size() < 2 ? "preparing inputs takes most of the time"
                          : "preparing inputs takes " + seconds(n[0]) + " of " + seconds(n[1]);
    case RunSign::few_workers: return "the loader has few workers";
    case RunSign::processor_cache:
      return "no failure is in this text; vLLM keeps processed pictures in the host's memory, "
             "VLLM_MM_INPUT_CACHE_GIB (4 GiB if not given) in the front end and as much in each engine process";
  }
  (void)facts;
  return {};
}

/// Signs that say what was being made rather than that something failed.
inline bool of_place(RunSign s) {
  return s == RunSign::server_profile || s == RunSign::engine_weights || s == RunSign::optimizer_set_up;
}

inline void add(std::vector<Action>& to, const char* id, const char* title, std::string how,
                Loses loses = Loses::nothing) {
  to.push_back({.id = id, .title = title, .fits_known = false, .how = std::move(how), .loses = loses});
}

}  // namespace sign_verdict

VLMEST_INLINE bool trains_with_engine(std::string_view text) {
  text = text.substr(0, 16 << 20);
  for (const std::string_view w :
       {"verl/", "(TaskRunner pid=", "actor_rollout", "openrlhf", "raysubmit", "swift rollout", "roll/",
        "namespace: roll", "slime/", "GRPOTrainer", "grpo_trainer.py", "use_vllm", "fsdp_workers.py", "vllm_rollout",
        "sharding_manager", "wake_up"})
    if (text.find(w) != std::string_view::npos) return true;
  return false;
}

VLMEST_INLINE std::optional<Verdict> judge_signs(const std::vector<FoundSign>& signs, const std::vector<LogFact>& facts,
                                                 bool says_memory, bool with_engine) {
  using namespace sign_verdict;
  const FoundSign* first = nullptr;
  // What failed comes before what was slow or only done.
  for (const FoundSign& f : signs)
    if (tells_failure(f.sign) && first == nullptr) first = &f;
  for (const FoundSign& f : signs)
    if (first == nullptr) first = &f;
  if (first == nullptr) return std::nullopt;
  Verdict v{.cause = cause_of(first->sign), .confidence = confidence(first->sign)};
  if (first->sign == RunSign::engine_weights && with_engine) v.cause = Cause::engine_budget;
  // The text does not say that it was memory; who asks suspects so.
  if (of_place(first->sign) && !says_memory) v.confidence *= 0.7;
  if (first->sign == RunSign::metal_commands) v.confidence = 0.4;
  v.why = words_of(*first, facts) + " (line " + std::to_string(first->line) + ").";
  if (first->sign == RunSign::engine_weights && with_engine)
    v.why += " It is the engine of the rollouts, which holds the model a second time beside the one that is trained.";
  if (of_place(first->sign) && !says_memory)
    v.why += " The text ends before its error: this holds if it was a lack of memory.";
  v.why += of_facts(facts);
  for (const FoundSign& f : signs)
    if (&f != first && cause_of(f.sign) != v.cause)
      v.remarks.push_back("line " + std::to_string(f.line) + ": " + words_of(f, facts));
  return v;
}

VLMEST_INLINE void name_profile_run(Verdict& v, const Failure& f, const std::vector<LogFact>& facts) {
  if (f.phase != RunPhase::server_profile) return;
  switch (v.cause) {
    case Cause::activations:
    case Cause::vision_tiles:
    case Cause::logits:
    case Cause::unknown: break;
    default: return;
  }
  const std::string was(name(v.cause));
  if (v.cause != Cause::unknown) v.why += " Of its kind it is one of " + was + ".";
  v.cause = Cause::profile_run;
  v.confidence = std::max(v.confidence, 0.7);
  v.why +=
      " The engine was in its profile run, over the largest inputs that its settings admit: fewer or smaller pictures "
      "at once make it smaller.";
  for (const auto& [fact, words] : {std::pair<std::string_view, const char*>{"encoder_tokens", "tokens of pictures"},
                                    {"encoder_profile_items", "dummy pictures"}})
    if (const auto n = elsewhere::count(facts, fact)) v.why += " It had " + sign_verdict::whole(*n) + " " + words + ".";
}

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
    case Cause::vision_tiles:
      if (found(RunSign::tower_loading))
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

VLMEST_INLINE std::vector<std::string> second_remarks(const Verdict& v, const Failure& f) {
  std::vector<std::string> r;
  if (!f.requested) return r;
  const Bytes asked = f.requested->value;
  const Bytes free = f.free ? f.free->value : Bytes{};
  // Only what is reserved beside tensors can be in pieces: what the driver has free it gives as one.
  if (v.cause != Cause::fragmentation && f.unallocated && f.unallocated->value + free >= asked && free < asked)
    r.push_back("fragmentation has a part: " + in_words(f.unallocated->value) +
                " are reserved and not in use, with the " + in_words(free) + " that are free enough for the " +
                in_words(asked) + " asked for, but not in one piece");
  if (v.cause != Cause::other_process && f.others && !f.others_deduced && free < asked &&
      f.others->value + free >= asked)
    r.push_back("other processes hold " + in_words(f.others->value) + " of this device: without them the " +
                in_words(asked) + " would have been there");
  return r;
}

}  // namespace vlmest::diagnose
