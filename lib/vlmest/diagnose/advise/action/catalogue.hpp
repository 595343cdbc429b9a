// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <vlmest/diagnose/advise/action/actions_inference.hpp>
#include <vlmest/diagnose/advise/action/actions_inputs.hpp>
#include <vlmest/diagnose/advise/action/actions_process.hpp>
#include <vlmest/diagnose/advise/action/actions_training.hpp>
#include <vlmest/diagnose/advise/action/id.hpp>
#include <vlmest/diagnose/advise/action/remedy_rows.hpp>
#include <vlmest/diagnose/advise/action/sign_rows.hpp>

/// All actions: what a row says stands there and nowhere else, its name included.
namespace vlmest::diagnose {

namespace catalogue {

template <std::size_t... N>
constexpr auto joined(const std::array<ActionEntry, N>&... tables) {
  std::array<ActionEntry, (N + ...)> r{};
  auto at = r.begin();
  ((at = std::copy(tables.begin(), tables.end(), at)), ...);
  return r;
}
inline constexpr auto rows = joined(training_actions, inference_actions, input_actions, process_actions, remedy_rows);

/// Of the rows, then of what signs have besides. An action that stands in several tables is the first of its name.
inline constexpr auto names = [] {
  std::array<std::string_view, rows.size() + sign_rows::rows.size() + 1> r{};
  std::size_t n = 0;
  for (const ActionEntry& e : rows) r[n++] = e.name;
  for (const sign_rows::Row& e : sign_rows::rows) r[n++] = e.name;
  r[n] = sign_rows::encoder_cache;
  return r;
}();
static_assert(names.size() <= 256, "ActionId has one byte");

/// The place of a name; that of none, names.size().
constexpr std::size_t place_of(std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace catalogue

/// The action of that name; a name that no row has does not compile.
consteval ActionId action_id(std::string_view name) {
  if (catalogue::place_of(name) == catalogue::names.size()) throw "no row of the catalogue has this name";
  return static_cast<ActionId>(catalogue::place_of(name));
}
/// That of a row.
constexpr ActionId id_of(const ActionEntry& e) { return static_cast<ActionId>(catalogue::place_of(e.name)); }
constexpr ActionId id_of(const sign_rows::Row& e) { return static_cast<ActionId>(catalogue::place_of(e.name)); }

/// The row of an action; nullptr where it is one of signs alone.
constexpr const ActionEntry* action_entry(ActionId a) {
  const auto at = static_cast<std::size_t>(a);
  return at < catalogue::rows.size() ? &catalogue::rows[at] : nullptr;
}

}  // namespace vlmest::diagnose
