// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace elsewhere {

VLMEST_INLINE Verdict of_host(const OomMessage& m) {
  Verdict v{.cause = Cause::host_memory, .confidence = confidence(Basis::host_message)};
  switch (m.reason) {
    case OomReason::shared_memory:
      v.why =
          "the shared memory of the DataLoader's workers (/dev/shm) is full, not the GPU: docker run --shm-size=16g "
          "or --ipc=host, fewer workers, or num_workers=0.";
      break;
    case OomReason::killed:
      v.why = "the process was killed because the host's memory ran out, not the GPU's";
      if (m.own_process) v.why += ": it held " + in_words(m.own_process->value);
      v.why +=
          ". Give the job more memory; load weights once and memory-mapped (safetensors, low_cpu_mem_usage=True); "
          "use fewer DataLoader workers, each of which holds a copy of what the dataset keeps.";
      break;
    default:
      v.why = "the host's memory ran out, not the GPU's";
      if (m.requested) v.why += ": " + in_words(m.requested->value) + " were asked for";
      v.why += ".";
  }
  return v;
}

VLMEST_INLINE Verdict of_server(const OomMessage& m, const std::vector<LogFact>& facts) {
  const bool sglang = m.text.find("mem-fraction") != std::string::npos ||
                      m.text.find("running-requests") != std::string::npos ||
                      m.text.find("Available tokens") != std::string::npos;
  Verdict v{.cause = Cause::kv_cache, .confidence = confidence(Basis::server_message)};
  const auto longest = count(facts, "longest_model_len");
  switch (m.reason) {
    case OomReason::device_in_use:
      v.cause = Cause::other_process;
      if (m.requested && m.free && m.total)
        v.why = in_words(m.total->value - std::min(m.free->value, m.total->value)) + " of the device's " +
                in_words(m.total->value) + " are in use before the server begins: " + in_words(m.free->value) +
                " are free of the " + in_words(m.requested->value) + " that it is to take";
      else
        v.why = "the device is in use by another process before the server begins";
      v.why += ". End that process, or lower --gpu-memory-utilization.";
      return v;
    case OomReason::prefill_too_large:
      // text_generation_server/models/flash_causal_lm.py, warmup: the one message gives the tokens of the prefill, the
      // other begins with those that the cache would hold.
      if (m.text.find("total tokens") != std::string::npos) {
        v.why =
            "the KV cache of the tokens that the server is to hold at once does not fit beside the weights: lower "
            "--max-batch-total-tokens and --max-total-tokens, or take more GPUs.";
        return v;
      }
      v.cause = Cause::activations;
      v.why =
          "the prefill that the server warms up with does not fit beside the weights: lower "
          "--max-batch-prefill-tokens and --max-input-tokens, or take more GPUs.";
      return v;
    case OomReason::share_too_small:
      v.cause = Cause::engine_budget;
      v.why =
          "of the share of the device that the engine may take (mem_fraction_static), the weights leave nothing for "
          "its KV cache: raise --mem-fraction-static where no other process needs the device, take more GPUs (--tp), "
          "or store the weights in fewer bits.";
      return v;
    case OomReason::kv_cache_full:
      v.why =
          "the KV cache that the server set aside is used up by the requests that run at once: fewer of them "
          "(--max-running-requests), shorter ones, or a larger pool (--mem-fraction-static).";
      return v;
    default: break;
  }
  if (m.requested && m.free)
    v.why = "the KV cache of one request of the greatest length needs " + in_words(m.requested->value) + ", and " +
            in_words(m.free->value) + " are left for it";
  else if (const auto asked = count(facts, "max_model_len"), held = count(facts, "kv_cache_tokens"); asked && held)
    v.why = "one request of the greatest length has " + std::to_string(static_cast<std::int64_t>(*asked)) +
            " tokens, and the KV cache holds " + std::to_string(static_cast<std::int64_t>(*held));
  else
    v.why = "too little is left for the KV cache";
  for (const auto& [name, words] : {std::pair<std::string_view, const char*>{"weights", "the weights take "},
                                    {"activation_peak", "the peak of the activations "},
                                    {"non_torch", "what is not torch's "}})
    if (const auto bytes = fact(facts, name)) v.why += std::string("; ") + words + in_words(*bytes);
  if (longest)
    v.why += "; by its own estimate a length of " + std::to_string(static_cast<std::int64_t>(*longest)) + " fits";
  v.why += sglang
               ? ". Raise --mem-fraction-static, shorten --context-length, store the cache in fp8 (--kv-cache-dtype "
                 "fp8_e5m2), or take more GPUs (--tp)."
               : ". Shorten --max-model-len, raise --gpu-memory-utilization, store the cache in fp8 (--kv-cache-dtype "
                 "fp8), admit fewer images (--limit-mm-per-prompt), or take more GPUs (--tensor-parallel-size).";
  return v;
}

}  // namespace elsewhere

VLMEST_INLINE void name_admitted_pictures(Verdict& v, const OomMessage& m, const std::vector<ReadSetting>& settings) {
  if (v.cause != Cause::kv_cache || m.reason != OomReason::kv_cache_too_small || m.requested || m.free) return;
  const auto admits = std::find_if(settings.begin(), settings.end(), [](const ReadSetting& s) {
    const auto n = parse_number(s.value);
    return s.flag == "--images" && s.from.find("mm_per_prompt") != std::string::npos && n && n->decimals == 0 &&
           n->digits > 1;
  });
  if (admits == settings.end()) return;
  v.cause = Cause::profile_run;
  v.confidence = confidence(Basis::pictures_admitted);
  v.why = "nothing is left for the KV cache, and " + admits->from + " (line " + std::to_string(admits->line) +
          ") admits several pictures a prompt: before it makes its cache the engine runs as many of the greatest size, "
          "for as many sequences as --max-num-seqs admits. Admit fewer of both, or set a smaller size "
          "(--mm-processor-kwargs).";
}

}  // namespace vlmest::diagnose
