// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/stack/mode.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/hypothesis.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest::diagnose {

/// A failed allocation read as one of a run with certain settings.
struct Reading {
  Plan plan;
  Mode mode = Mode::inference;
  std::string assuming;                ///< what differs from the settings asked for; empty: nothing
  Bytes peak{};                        ///< of the whole run, by the estimate
  std::vector<Hypothesis> hypotheses;  ///< best first
  /// What is alive, as requested, when the best hypothesis is asked for; the largest kind first.
  std::vector<MemoryPart> live;
  double agreement() const { return hypotheses.empty() ? 0 : hypotheses.front().agreement; }
};

}  // namespace vlmest::diagnose
