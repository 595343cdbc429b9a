// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

#include "args.hpp"
#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// What flags say of the run that is diagnosed.
struct FlagsOfRun {
  EstimateArgs args;
  int gpus = 1;
  std::vector<std::string> given;  ///< the names of those that were given
  bool has(const std::string& flag) const;
};

/// All that `vlmest diagnose` answers with.
struct Diagnosis {
  std::vector<Evidence> evidence;
  diagnose::Verdict verdict;
  std::vector<diagnose::Action> actions;
  std::vector<diagnose::ReadSetting> read;  ///< settings that were read from the texts
  std::vector<std::string> unused;          ///< flags without a model to be of
};

/// What the files tell together, with the run as flags and, where they are silent, the texts give it. Throws Error for
/// a model, a device or settings that are none.
Diagnosis diagnosis_of(std::vector<Evidence> evidence, const FlagsOfRun& flags);

}  // namespace vlmest::tool
