// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "args.hpp"

/// Flags that are given where they would change nothing are refused: each has an effect or an error.
namespace vlmest::tool {

/// The flags of a command line that were given.
class GivenFlags {
 public:
  explicit GivenFlags(const CLI::App& app) : app_(&app) {}

  bool has(const std::string& flag) const;
  /// Throws UsageError "FLAG: has no effect WHEN" for the first of `flags` that was given.
  void no_effect(const std::vector<std::string>& flags, const std::string& when, const std::string& hint) const;
  /// Those of them that say what was run: model, device, phase, inputs, settings.
  std::vector<std::string> of_run() const;

 private:
  const CLI::App* app_;
};

/// Which phases a command line asks for.
struct AskedPhases {
  bool inference = true;
  bool training = true;
  std::string words;  ///< "with --phase train"
  std::string hint;   ///< what to do instead
};

/// Those of --phase: inference, prefill, decode, train or all.
AskedPhases asked_phases(const std::string& phase);

/// What describes a run and contradicts itself, or belongs to a phase that is not asked for. Throws UsageError.
void check_run_flags(const GivenFlags& given, const EstimateArgs& args, const AskedPhases& phases);

/// The same for commands that take a run's flags without needing one: all of them need --config.
void check_run_is_named(const GivenFlags& given, const std::vector<std::string>& more);

}  // namespace vlmest::tool
