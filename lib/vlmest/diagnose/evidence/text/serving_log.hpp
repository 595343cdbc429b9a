// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>

/// Figures that servers and trainers print once while they start.
namespace vlmest::diagnose {

/// Words, and the figure right behind (or in front of) them. Sources: vLLM v0 and v1 (worker/gpu_worker.py,
/// v1/core/kv_cache_utils.py), SGLang (model_executor/model_runner.py), llama.cpp (src/llama-model.cpp,
/// llama-context.cpp), Megatron-LM (training/theoretical_memory_usage.py), DeepSpeed (runtime/zero).
struct FactWords {
  std::string_view words;
  std::string_view name;
  enum class Kind : std::uint8_t { size, count, size_before } kind;
  std::string_view also = {};  ///< must stand in the line as well
};

inline constexpr auto fact_words = std::to_array<FactWords>({
    {"Model loading took", "weights", FactWords::Kind::size},
    {"model weights take", "weights", FactWords::Kind::size},
    {"Loading model weights took", "weights", FactWords::Kind::size},
    {"Available KV cache memory:", "kv_cache", FactWords::Kind::size},
    {"reserved for KV Cache is", "kv_cache", FactWords::Kind::size},
    {"GPU KV cache size:", "kv_cache_tokens", FactWords::Kind::count},
    {"Maximum concurrency for", "tokens_per_request", FactWords::Kind::count},
    {"initialized with a budget of", "encoder_tokens", FactWords::Kind::count},
    {"profiled with", "encoder_profile_items", FactWords::Kind::count},
    {"total_gpu_memory (", "device_memory", FactWords::Kind::size},
    {"gpu_memory_utilization (", "memory_utilization", FactWords::Kind::count},
    {"non_torch_memory takes", "non_torch", FactWords::Kind::size},
    {"PyTorch activation peak memory takes", "activation_peak", FactWords::Kind::size},
    {"Graph capturing finished in", "graphs", FactWords::Kind::size, "took"},
    {"KV cache is needed", "kv_cache_needed", FactWords::Kind::size_before},
    {"available KV cache memory (", "kv_cache", FactWords::Kind::size},
    {"models's max seq len (", "max_model_len", FactWords::Kind::count},
    {"model's max seq len (", "max_model_len", FactWords::Kind::count},
    {"stored in KV cache (", "kv_cache_tokens", FactWords::Kind::count},
    {"estimated maximum model length is", "longest_model_len", FactWords::Kind::count},
    {"mem usage=", "weights", FactWords::Kind::size, "Load weight end"},
    {"mem usage=", "graphs", FactWords::Kind::size, "graph end"},
    {"avail mem=", "free", FactWords::Kind::size},
    {"#tokens:", "kv_cache_tokens", FactWords::Kind::count},
    {"K size:", "k_cache", FactWords::Kind::size},
    {"V size:", "v_cache", FactWords::Kind::size},
    {"KV size:", "kv_cache", FactWords::Kind::size},
    {"model buffer size =", "weights", FactWords::Kind::size},
    {"KV buffer size =", "kv_cache", FactWords::Kind::size},
    {"compute buffer size =", "compute_buffer", FactWords::Kind::size},
    {"weight and optimizer=", "weights_and_optimizer", FactWords::Kind::size},
    {"activation=", "activations", FactWords::Kind::size, "Theoretical"},
    {"most loaded shard in billions:", "parameters_in_billions", FactWords::Kind::count},
    {"Total persistent parameters:", "persistent_parameters", FactWords::Kind::count},
});

consteval WordStarts fact_starts() {
  std::array<std::string_view, fact_words.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = fact_words[i].words;
  return WordStarts::make(words, false);
}

/// Which of fact_words a line holds, a bit each.
std::uint64_t facts_in(std::string_view line);

/// Adds the facts of a line, each where its words stand first; at most 4096 are kept.
void add_facts(std::string_view line, std::int64_t number, std::vector<LogFact>& facts);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/serving_log.hpp>
#endif
