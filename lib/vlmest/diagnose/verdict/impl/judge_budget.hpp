// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge_budget.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<KvNeed> kv_need(const std::vector<LogFact>& facts, const Settings& settings,
                                            const Device& device, Estimator& estimator) {
  Plan plan = settings.plan;
  plan.new_tokens = 1;
  const bool details = std::exchange(estimator.details, false);
  const Estimate e = estimator(settings.vlm, plan, device, Phases::inference);
  estimator.details = details;
  const std::int64_t tokens = e.sequences.seq * std::max<std::int64_t>(plan.batch, 1);
  if (tokens < 1 || e.inference.kv_cache.value() < tokens) return std::nullopt;
  KvNeed n{.token = Bytes(e.inference.kv_cache.value() / tokens), .ranks = settings.placement.gpus, .seq = plan.seq};
  const auto weights = elsewhere::fact(facts, "weights");
  if (n.ranks > 1 || !weights || *weights == Bytes{}) return n;
  const double parts = static_cast<double>(e.inference.weights.value()) / static_cast<double>(weights->value());
  constexpr double most_ranks = 1 << 16;  // beyond that the log is of something else
  if (!(parts < most_ranks) || cut_off::whole_part.reached(std::abs(parts / std::max(std::round(parts), 1.0) - 1)))
    return std::nullopt;
  n.ranks = std::max<std::int64_t>(1, std::llround(parts));
  return n;
}

VLMEST_INLINE std::optional<Verdict> judge_engine_budget(const std::vector<LogFact>& facts,
                                                         const std::optional<KvNeed>& need) {
  std::optional<Bytes> least;
  for (const LogFact& f : facts)
    if (f.name == "kv_cache" && f.size && (!least || f.size->value < *least)) least = f.size->value;
  if (!least) return std::nullopt;
  Verdict v;
  v.why = "no failure is in this text; the server has " + in_words(*least) + " left for its KV cache";
  for (const auto& [name, words] : {std::pair<std::string_view, const char*>{"weights", "the weights take"},
                                    {"activation_peak", "the peak of the activations"},
                                    {"non_torch", "what is not torch's"}})
    if (const auto bytes = elsewhere::fact(facts, name)) v.why += ", " + std::string(words) + " " + in_words(*bytes);
  v.why += ".";
  const auto weights = elsewhere::fact(facts, "weights");
  bool little = weights && !cut_off::left_for_cache.reached(*least, *weights);
  if (need && need->token.value() > 0) {
    const std::int64_t tokens =
        std::clamp<std::int64_t>(least->value() / need->token.value(), 0, std::int64_t{1} << 40) * need->ranks;
    v.why += " That holds " + score_matrix::number(tokens) + " tokens";
    if (need->ranks > 1)
      v.why += ", where each of " + std::to_string(need->ranks) + " GPUs has its part of the weights and of the cache";
    if (need->seq) {
      little = tokens < *need->seq;
      v.why += little ? ", and a request may have " + score_matrix::number(*need->seq) : "";
    }
    v.why += ".";
  }
  if (!little) return v;
  v.cause = Cause::kv_cache;
  v.confidence = confidence(need && need->seq ? Basis::server_message : Basis::little_left);
  v.why +=
      " An engine that is left so little does not start: shorten --max-model-len, raise --gpu-memory-utilization where "
      "no other process needs the device, admit fewer or smaller pictures (--limit-mm-per-prompt), store the cache in "
      "fp8 (--kv-cache-dtype fp8), or take more GPUs (--tensor-parallel-size).";
  return v;
}

}  // namespace vlmest::diagnose
