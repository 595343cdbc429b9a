// SPDX-License-Identifier: Apache-2.0
#include "helps.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include <vlmest/diagnose/advise/action/actions.hpp>

namespace vlmest::tool {

std::vector<diagnose::Action> find_helps(const Reported& r, diagnose::Mode mode) {
  Estimator estimator;  // the report's own keeps the graphs that it speaks of
  std::vector<diagnose::Action> all =
      diagnose::actions(r.vlm, r.plan, r.device, mode, estimator, r.estimator.allocator);
  const auto enough = [](const diagnose::Action& a) { return a.fits; };
  const auto rest = std::stable_partition(all.begin(), all.end(), enough);
  // What saves about as much, within a fiftieth, goes by what it changes and by how short it is to write.
  const auto rank = [](const diagnose::Action& a) {
    const double peak = static_cast<double>((a.peak_after + a.saves).value());
    return std::tuple(-std::llround(static_cast<double>(a.saves.value()) / peak * 50), a.loses, a.how.size());
  };
  std::stable_sort(rest, all.end(),
                   [&](const diagnose::Action& a, const diagnose::Action& b) { return rank(a) < rank(b); });
  std::vector<diagnose::Action> chosen;
  std::set<std::string_view> kinds;  // "checkpointing", "loss", "weights"
  for (diagnose::Action& a : all) {
    const std::string_view id = name(a.id);
    if (chosen.size() < 3 && kinds.insert(id.substr(0, id.find('-'))).second) chosen.push_back(std::move(a));
  }
  return chosen;
}

}  // namespace vlmest::tool
