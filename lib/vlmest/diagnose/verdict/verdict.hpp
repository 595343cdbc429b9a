// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/stack/mode.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/explained.hpp>
#include <vlmest/diagnose/inversion/hypothesis.hpp>
#include <vlmest/diagnose/inversion/solution.hpp>
#include <vlmest/diagnose/inversion/together_solution.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest::diagnose {

/// What a run died of, with why.
struct Verdict {
  Cause cause = Cause::unknown;
  double confidence = 0;                   ///< 0 to 1
  std::string why;                         ///< sentences with the figures that decided
  std::vector<std::string> remarks;        ///< what else the evidence shows, beside the cause
  std::optional<DescribedTensor> tensor;   ///< what was asked for
  bool named_by_model = false;             ///< no model is known, and one would tell which tensor that was
  std::vector<Hypothesis> hypotheses;      ///< all of them, best first
  std::vector<MemoryPart> live;            ///< what was alive then, by the estimate or the snapshot
  std::vector<Solution> solutions;         ///< with which other inputs a tensor would have the size
  Together together;                       ///< the same of inputs of which several are not told
  std::optional<Bytes> predicted_peak;     ///< of the settings given
  std::optional<Bytes> limit;              ///< what this process's tensors may take
  std::optional<Mode> mode;                ///< whether the run trained; empty: nothing decides it
  std::string mode_by;                     ///< what decides it: a flag, a frame, the tensor
  std::optional<Explanation> explanation;  ///< whether the settings given explain it; empty: none were given
  std::optional<Plan> changed;             ///< the settings that do, where the ones given do not
};

}  // namespace vlmest::diagnose
