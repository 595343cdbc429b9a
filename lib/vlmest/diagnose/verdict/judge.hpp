// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/inversion/reading.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

namespace vlmest::diagnose {

/// From the figures and the stack alone, where no model is given. `bounds` are what flags say of the run nonetheless.
Verdict judge(const Failure& f, const LengthBounds& bounds = {});

/// What a reading's best hypothesis stands on besides the size.
inline Ground ground(const Failure& f) {
  const bool phase = f.phase != RunPhase::unknown && f.phase != RunPhase::forward && f.phase != RunPhase::decode;
  if (!f.telling) return Ground::any_small;
  return stack_cause(f.site, RunPhase::unknown) != Cause::unknown || phase ? Ground::stack : Ground::size;
}

/// With the run's settings read in, which explain the failure.
Verdict judge_explained(const Failure& f, const Reading& r);

/// With settings that do not explain the failure: the cause is what figures and stack say without them.
Verdict judge_unexplained(const Failure& f, const Reading& r);

/// Whether the run trained, as flag, evidence or, where neither tells, the reading that explains the failure has it.
void set_mode(Verdict& v, const Failure& f, std::optional<Mode> asked, std::optional<Mode> read);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge.hpp>
#endif
