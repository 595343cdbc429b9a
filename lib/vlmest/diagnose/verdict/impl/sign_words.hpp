// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/verdict/sign_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose::sign_verdict {

VLMEST_INLINE std::string words_of(const FoundSign& f) {
  const auto& n = f.numbers;
  switch (f.sign) {
    case RunSign::image_beyond_cache: {
      const std::string what = f.note.empty() ? "a picture" : "a " + f.note;
      return n.size() < 2
                 ? what + " has more tokens than the engine's encoder cache"
                 : what + " of " + whole(n[0]) + " tokens is larger than the engine's encoder cache of " + whole(n[1]) +
                       " tokens, which is as large as one step's tokens (--max-num-batched-tokens) or the "
                       "largest picture that the processor was expected to make";
    }
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
             "because the host's memory ran out";
    case RunSign::shared_memory:
      return "the shared memory of the DataLoader's workers (/dev/shm) is full: batches pass through it on their way "
             "from the workers";
    case RunSign::data_worker_died:
      return "a worker of the DataLoader ended without an exception, as one does that the kernel kills for the host's "
             "memory, or whose /dev/shm is full";
    case RunSign::worker_pool_died:
      return "a process of a pool ended without an exception, as one does that the kernel kills for the host's memory";
    case RunSign::paging_file:
      return "Windows refused to commit memory: RAM and the paging file together are too small";
    case RunSign::pinned_memory: return "page-locked memory of the host could not be had";
    case RunSign::sleeping_engine:
      return "the allocator of an engine's sleep mode could not map memory: the engine that wakes up takes its weights "
             "and its KV cache again, beside what training holds by then";
    case RunSign::static_budget:
      return "nothing is left for the KV cache of the share of the device that the engine may take "
             "(mem_fraction_static)";
    case RunSign::turbomind_budget:
      return "the KV cache takes its share of the free memory (cache_max_entry_count, 0.8 if not given), and what is "
             "left does not hold the run";
    case RunSign::metal_commands:
      return "Metal could not run a command buffer within what it may keep wired: weights, the engine's cache and the "
             "temporaries are together beyond the working set that it recommends";
    case RunSign::compute_pool:
      return "llama.cpp's pool of temporaries could not grow: what a batch of tokens computes does not fit beside the "
             "layers, the KV cache and the picture encoder that are on the GPU";
    case RunSign::server_profile:
      return "the engine was in its profile run, over the largest inputs that its settings admit (as many pictures of "
             "the greatest size as max_num_seqs, max_num_batched_tokens and limit_mm_per_prompt allow)";
    case RunSign::engine_weights: return "the engine was making its model: its weights do not fit";
    case RunSign::optimizer_set_up:
      return "DeepSpeed was setting up its engine, where it makes fp32 copies of the weights and the optimizer's "
             "states";
    case RunSign::layers_taken_back:
      return n.size() < 3 ? "the server takes layers back from the GPU"
                          : "the server was fitting a context of " + whole(n[0]) +
                                " tokens and took layers back from the GPU, from " + whole(n[1]) + " to " +
                                whole(n[2]) + ": its KV cache and its attention over that context grow with it";
    case RunSign::tower_loading:
      return "the text ends where the picture encoder is loaded: its weights and its graph come beside the layers that "
             "are on the GPU already";
    case RunSign::ray_died:
      return "a worker of ray ended without an exception; the first reason that ray names is the kernel's OOM killer";
    case RunSign::host_killed_words: return "the text says that the host's memory ran out";
    case RunSign::slow_map:
      return n.size() < 2
                 ? "the data set is prepared before the first step"
                 : "the data set is prepared before the first step, with " + tenths(n[0] / 3600) + " hours to go at " +
                       whole(n[1]) + " examples a second" +
                       (n.size() > 2 && n[2] > 0 ? " of " + whole(n[2]) + " processes, " + tenths(n[1] / n[2]) + " each"
                                                 : "");
    case RunSign::slow_loader:
      return n.size() < 2 ? "steps wait for data"
                          : "steps wait " + tenths(n[0]) + " of " + tenths(n[1]) + " s for their data";
    case RunSign::busy_model:
      return n.size() < 2 ? "steps do not wait for data"
                          : "steps wait " + thousandths(n[0]) + " of " + tenths(n[1]) +
                                " s for their data: the loader is not what they are slow by. The rest is the model's, "
                                "in which a trace of torch.profiler tells products, launches and exchange apart";
    case RunSign::slow_steps_words:
      return n.size() < 2 ? "preparing inputs takes most of the time"
                          : "preparing inputs takes " + tenths(n[0]) + " of " + tenths(n[1]) + " s";
    case RunSign::few_workers: return "the loader has few workers";
    case RunSign::processor_cache:
      return "no failure is in this text; vLLM keeps processed pictures in the host's memory, VLLM_MM_INPUT_CACHE_GIB "
             "(4 GiB if not given) in the front end and as much in each engine process";
  }
  return {};
}

}  // namespace vlmest::diagnose::sign_verdict
