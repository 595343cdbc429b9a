// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/library/gpu.hpp>

namespace vlmest::diagnose {

/// Parts that a range is lowered by, from 15 / 16 to 1 / 16.
inline constexpr std::int64_t lever_steps = 16;

/// What an action changes besides memory and time.
enum class Loses : std::uint8_t {
  nothing,  ///< the same is computed, up to rounding
  quality,  ///< something else is computed: fewer pixels, fewer trained weights, fewer bits
  order     ///< the last resort: what is named after everything else
};

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

/// How an action is taken in general, where no model is given or nothing can be estimated, on each platform; empty
/// where that has no such setting.
struct InGeneral {
  bool training = true, inference = true;       ///< of which it is
  std::string_view torch{}, engine{}, other{};  ///< Platform (generic_actions.hpp)
  bool (*in_force)(const Plan&,
                   const Gpu&) = nullptr;  ///< the run has it already, or is said not to have what it acts on
  bool (*acts)(const Failure&) = nullptr;  ///< it can act on that failure
};

/// One row of the catalogue: all there is of an action.
struct ActionEntry {
  std::string_view name{};  ///< in kebab case; never changed, people's scripts have it
  std::string_view title{};
  Loses loses = Loses::nothing;
  /// Settings to try, each needing less than the one before; none where the action does not apply. Null: what it
  /// changes is no setting.
  std::vector<Settings> (*options)(const Subject&) = nullptr;
  /// The line of code or the flag that makes `after` of the subject's settings.
  std::string (*how)(const Subject&, const Settings& after) = nullptr;
  bool of_reserved = false;  ///< what counts is reserved memory
  /// The options save no more from some point on, where something else is the peak: the first of those is taken.
  bool levels_off = false;
  bool for_time = false;    ///< offered where it saves time alone, too
  std::string_view line{};  ///< in place of `how`, where no settings decide it
  InGeneral general{};

  constexpr ActionEntry in_general(const InGeneral& g) const {
    ActionEntry r = *this;
    r.general = g;
    return r;
  }
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
