// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace generic_actions {

inline std::string_view taken_with(const InGeneral& g, Platform p) {
  return p == Platform::torch ? g.torch : p == Platform::engine ? g.engine : g.other;
}

}  // namespace generic_actions

VLMEST_INLINE Platform platform_of(const Failure& f) {
  if (f.foreign) return Platform::other;
  if (f.engine_pool || f.phase == RunPhase::server_profile) return Platform::engine;
  for (const Frame& frame : f.frames)
    for (const char* engine : {"/vllm/", "/vllm_", "/sglang/"})
      if (frame.file.find(engine) != std::string::npos) return Platform::engine;
  return Platform::torch;
}

VLMEST_INLINE bool adapt(Action& a, const Failure& f) {
  if (platform_of(f) != Platform::other) return true;
  const ActionEntry* e = action_entry(a.id);
  if (e == nullptr || e->general.other.empty() || (e->general.acts && !e->general.acts(f))) return false;
  a.how = std::string(e->general.other);
  return true;
}

VLMEST_INLINE Platform platform_for(Cause cause, const Failure& f) {
  const Platform p = platform_of(f);
  const bool of_engines = cause == Cause::profile_run || cause == Cause::engine_budget ||
                          cause == Cause::encoder_cache || cause == Cause::kv_cache;
  return p == Platform::torch && of_engines ? Platform::engine : p;
}

VLMEST_INLINE std::optional<Action> generic_action(ActionId id, Platform platform) {
  const ActionEntry* e = action_entry(id);
  if (e == nullptr || generic_actions::taken_with(e->general, platform).empty()) return std::nullopt;
  Action a{.id = id,
           .title = std::string(e->title),
           .fits_known = false,
           .how = std::string(generic_actions::taken_with(e->general, platform))};
  a.generic = true;
  return a;
}

VLMEST_INLINE std::vector<Action> generic_actions_of(const Verdict& v, const Failure& f, const KnownSettings& known) {
  using namespace generic_actions;
  const Platform platform = platform_for(v.cause, f);
  std::vector<Action> r;
  for (const Of& of : by_cause) {
    if (of.cause != v.cause) continue;
    for (const ActionId id : of.ids) {
      auto a = generic_action(id, platform);
      if (!a) continue;
      const InGeneral& g = action_entry(id)->general;
      if (g.acts && !g.acts(f)) continue;
      // Beside a trainer an engine's own settings act as well.
      const bool applies = !known.mode || v.cause == Cause::engine_budget ? true
                           : *known.mode == Mode::training                ? g.training
                                                                          : g.inference;
      if (!applies || (known.plan != nullptr && g.in_force && g.in_force(*known.plan, known.gpu))) continue;
      if (!known.mode && g.training != g.inference) a->of = g.training ? Mode::training : Mode::inference;
      r.push_back(*std::move(a));
    }
  }
  return r;
}

}  // namespace vlmest::diagnose
