// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/run_mode.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<ToldMode> told_mode(const std::vector<Frame>& frames, RunPhase phase) {
  if (auto told = run_mode::innermost(frames, run_mode::deciding)) return told;
  if (auto told = run_mode::innermost(frames, run_mode::around)) return told;
  switch (phase) {
    case RunPhase::loss:
    case RunPhase::backward:
    case RunPhase::optimizer_step: return ToldMode{Mode::training, "the " + std::string(name(phase)) + " in the stack"};
    case RunPhase::decode:
    case RunPhase::server_profile:
      return ToldMode{Mode::inference, "the " + std::string(name(phase)) + " in the stack"};
    default: return std::nullopt;
  }
}

VLMEST_INLINE std::optional<ToldMode> told_mode(const MemorySeries& log) {
  for (const MemoryRow& r : log.rows)
    if (r.loss || r.grad_norm || r.loss_scale)
      return ToldMode{Mode::training, "the losses at line " + std::to_string(r.line)};
  for (const LogFact& f : log.facts)
    if (f.name == "kv_cache") return ToldMode{Mode::inference, "the KV cache at line " + std::to_string(f.line)};
  return std::nullopt;
}

}  // namespace vlmest::diagnose
