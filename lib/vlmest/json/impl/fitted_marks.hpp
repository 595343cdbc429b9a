// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/fitted_marks.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE std::vector<FittedMark> read_fitted_marks(const nlohmann::json& document, const std::string& where) {
  std::vector<FittedMark> r;
  if (!document.is_object() || !document.contains("fitted")) return r;
  const nlohmann::json& list = document["fitted"];
  const std::string hint = "a list of {\"quantities\": […], \"fitted\": true|false|\"partly\", \"reason\": \"…\"}";
  if (!list.is_array()) throw Error(where + ".fitted", "is no list", hint);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = where + ".fitted[" + std::to_string(i) + "]";
    const nlohmann::json& o = list[i];
    if (!o.is_object() || !o.contains("quantities") || !o["quantities"].is_array() || !o.contains("fitted"))
      throw Error(at, "lacks its quantities or what they are", hint);
    FittedMark m{.quantities = {}, .fitted = read_fitted(o["fitted"], at + ".fitted"), .reason = {}};
    for (const auto& q : o["quantities"]) {
      if (!q.is_string()) throw Error(at + ".quantities", "holds something else than names", hint);
      m.quantities.push_back(q.get<std::string>());
    }
    if (o.contains("reason") && o["reason"].is_string()) m.reason = o["reason"].get<std::string>();
    if (m.fitted != Fitted::no && m.reason.empty()) throw Error(at, "has no reason", "say what was fitted, and when");
    r.push_back(std::move(m));
  }
  return r;
}

VLMEST_INLINE const FittedMark* mark_of(const std::vector<FittedMark>& marks, std::string_view quantity) {
  const auto named = [&](std::string_view name) -> const FittedMark* {
    for (const FittedMark& m : marks)
      if (std::find(m.quantities.begin(), m.quantities.end(), name) != m.quantities.end()) return &m;
    return nullptr;
  };
  const FittedMark* own = named(quantity);
  return own ? own : named("*");
}

}  // namespace vlmest::json
