// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/text/memory_series.hpp>
#include <vlmest/diagnose/text/size_text.hpp>
#include <vlmest/diagnose/text/word_starts.hpp>

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
inline std::uint64_t facts_in(std::string_view line) {
  static constexpr auto starts = fact_starts();
  std::uint64_t in = 0;
  for (std::size_t at = 0; at + 3 <= line.size(); ++at)
    for (auto may = starts(line, at) & ~in; may != 0; may &= may - 1)
      if (const auto i = static_cast<std::size_t>(std::countr_zero(may));
          line.substr(at).starts_with(fact_words[i].words))
        in |= std::uint64_t{1} << i;
  return in;
}

/// Adds the facts of a line, each where its words stand first; at most 4096 are kept.
inline void add_facts(std::string_view line, std::int64_t number, std::vector<LogFact>& facts) {
  using Kind = FactWords::Kind;
  if (line.size() > 4096) line = line.substr(0, 4096);
  for (auto in = facts_in(line); in != 0 && facts.size() < 4096; in &= in - 1) {
    const auto& f = fact_words[static_cast<std::size_t>(std::countr_zero(in))];
    const auto at = line.find(f.words);
    if (!f.also.empty() && line.find(f.also) == std::string_view::npos) continue;
    LogFact fact{std::string(f.name), std::nullopt, 0, number};
    auto begin = at + f.words.size();
    if (f.words.ends_with("finished in")) {
      const auto took = line.find("took", begin);
      if (took == std::string_view::npos) continue;
      begin = took + 4;
    }
    if (f.kind == Kind::count) {
      while (begin < line.size() && is_blank(line[begin])) ++begin;
      auto end = begin;
      while (end < line.size() && size_text::in_number(line[end]) && end - begin < 24) ++end;
      while (end > begin && !is_digit(line[end - 1])) --end;
      // Only commas: thousands, however many digits follow.
      const auto n = parse_number(line.substr(begin, end - begin));
      if (!n) continue;
      fact.number = n->value();
    } else {
      auto end = at;
      while (f.kind == Kind::size_before && end > 0 && is_blank(line[end - 1])) --end;
      const auto found = f.kind == Kind::size_before ? size_before(line, end) : size_at(line, begin);
      if (!found || !found->size) continue;
      fact.size = found->size;
      fact.number = static_cast<double>(found->size->value.value());
    }
    facts.push_back(std::move(fact));
  }
}

}  // namespace vlmest::diagnose
