// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/report/estimate.hpp>

/// The budget that an engine logs when it starts: weights, peak of its profile run, what is not torch's, and what is
/// left for its KV cache.
namespace vlmest::diagnose {

/// What one token takes of an engine's KV cache on one GPU.
struct KvNeed {
  Bytes token{};
  std::int64_t ranks = 1;           ///< GPUs that the weights are divided among, by the settings or the log
  std::optional<std::int64_t> seq;  ///< tokens that a request may have, where that is told
};

/// By the settings, and the weights that the log gives for a rank where the settings are of one GPU; nothing where
/// these are no whole part of the settings' weights, so that the log is of others, as of quantized ones.
std::optional<KvNeed> kv_need(const std::vector<LogFact>& facts, const Settings& settings, const Device& device,
                              Estimator& estimator);

/// That too little is left for the KV cache, though no failure is in the text; with the other figures. Nothing where
/// the log does not say what is left, a verdict without a cause where it is enough.
std::optional<Verdict> judge_engine_budget(const std::vector<LogFact>& facts, const std::optional<KvNeed>& need = {});

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_budget.hpp>
#endif
