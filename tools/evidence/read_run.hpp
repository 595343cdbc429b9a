// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/run_settings.hpp>
#include <vlmest/diagnose/evidence/text/training_words.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/parallel/strategy.hpp>

#include "args.hpp"
#include "flag_rules.hpp"

namespace vlmest::tool {

/// What a text says of its run, as far as the shipped descriptions know it.
struct ReadRun {
  std::vector<diagnose::ReadSetting> settings;  ///< "--config" and "--device" first, where they are known
  std::vector<diagnose::ReadSetting> told;      ///< by sentences: less sure
  diagnose::TrainingWords training;
  bool empty() const { return settings.empty() && training.says == 0; }
};

ReadRun read_run(std::string_view text);

/// Puts what was read where no flag gives it, and, with `and_told`, what nothing but sentences tell. Training's
/// settings are taken of a training alone. Returns what it took.
std::vector<diagnose::ReadSetting> take_settings(const ReadRun& run, bool training, bool and_told,
                                                 const std::vector<std::string>& given, EstimateArgs& args,
                                                 parallel::Strategy& placement);

}  // namespace vlmest::tool
