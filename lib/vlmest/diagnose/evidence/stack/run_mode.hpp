// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/stack/mode.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// Whether a run trained or answered prompts, by what it left behind.
namespace vlmest::diagnose {

/// What evidence tells, with the words that tell it.
struct ToldMode {
  Mode mode = Mode::inference;
  std::string by;  ///< "`training_step` in trainer.py"
};

/// By a stack, outermost frame first, and by the phase that it was read as; nothing where neither tells.
std::optional<ToldMode> told_mode(const std::vector<Frame>& frames, RunPhase phase);

/// By the lines of a log: losses, gradient norms and loss scales are a training's, a KV cache's size a server's.
std::optional<ToldMode> told_mode(const MemorySeries& log);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/run_mode.hpp>
#endif
