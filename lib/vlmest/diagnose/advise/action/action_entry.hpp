// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/advise/action/action.hpp>

namespace vlmest::diagnose {

/// The run that actions start from.
struct Subject {
  const Settings& now;
  const Device& device;
  Mode mode;
  bool fits = false;                    ///< as it is
  std::string vision = "vision_tower";  ///< path of the vision tower's module; empty: none
  const Plan& plan() const { return now.plan; }
  bool training() const { return mode == Mode::training; }
};

/// One row of the table of actions.
struct ActionEntry {
  std::string_view id;
  std::string_view title;
  Loses loses = Loses::nothing;
  /// Settings to try, each needing less than the one before; none where the action does not apply.
  std::vector<Settings> (*options)(const Subject&) = nullptr;
  /// The line of code or the flag that makes `after` of the subject's settings.
  std::string (*how)(const Subject&, const Settings& after) = nullptr;
  bool of_reserved = false;  ///< what counts is reserved memory
  /// The options save no more from some point on, where something else is the peak: the first of those is taken.
  bool levels_off = false;
  bool for_time = false;  ///< offered where it saves time alone, too
};

/// What bitsandbytes is to leave alone: the vision tower's module, where there is one, and the head. By its whole path:
/// names are matched from their beginning (transformers 5 quantizers_utils.py, should_convert_module).
inline std::string skipped_modules(const Subject& s) {
  const std::string tower = s.vision.empty() ? "" : "\"" + s.vision + "\", ";
  return "llm_int8_skip_modules=[" + tower + "\"lm_head\"]";
}

/// The subject's settings with one change, or nothing where it does not apply.
template <class Change>
std::vector<Settings> changed(const Subject& s, bool applies, Change&& change) {
  std::vector<Settings> r;
  if (applies) change(r.emplace_back(s.now));
  return r;
}

}  // namespace vlmest::diagnose
