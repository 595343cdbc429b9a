// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/diagnose/advise/action/action_id.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace vlmest::diagnose {

/// A change of settings that needs less memory, estimated anew.
struct Action {
  ActionId id{};
  std::string title;  ///< "recompute the activations of every layer"
  /// Less at the peak: of allocated memory, or, where `of_reserved`, of reserved memory, for changes of the allocator.
  Bytes saves{};
  bool of_reserved = false;
  double time_cost_pct = 0;  ///< of the time of one sequence; negative: faster
  Bytes peak_after{};
  Bytes reserved_after{};
  bool fits = false;
  /// False: whether it is enough cannot be said, because the settings do not explain what failed.
  bool fits_known = true;
  bool generic = false;    ///< against the cause in general: nothing was estimated, all figures are empty
  std::optional<Mode> of;  ///< where it is not known whether the run trained: of which it is
  std::string how;         ///< the line of code or the flag
  Loses loses = Loses::nothing;
  Settings after;  ///< what was estimated
};

}  // namespace vlmest::diagnose
