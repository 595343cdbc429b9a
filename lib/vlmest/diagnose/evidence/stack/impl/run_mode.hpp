// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/diagnose/evidence/stack/run_mode.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace run_mode {

/// By the innermost frame that has a word of that column, with its name. A trainer that generates is answering prompts
/// at that moment, and one that evaluates keeps nothing for a backward.
inline std::optional<ToldMode> innermost(const std::vector<Frame>& frames, std::optional<Mode> FrameMeaning::*column) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto* m =
        frame_words::first(frame_words::low(*frame), [&](const FrameMeaning& x) { return (x.*column).has_value(); });
    if (m == nullptr) continue;
    const std::string file = frame->file.substr(frame->file.find_last_of("/\\") + 1);
    const std::string& what = frame->function.empty() ? frame->code : frame->function;
    return ToldMode{*(m->*column), "`" + what + "`" + (file.empty() ? "" : " in " + file)};
  }
  return std::nullopt;
}

}  // namespace run_mode

VLMEST_INLINE std::optional<ToldMode> told_mode(const std::vector<Frame>& frames, RunPhase phase) {
  if (auto told = run_mode::innermost(frames, &FrameMeaning::mode)) return told;
  if (auto told = run_mode::innermost(frames, &FrameMeaning::around)) return told;
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
