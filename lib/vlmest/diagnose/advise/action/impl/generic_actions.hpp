// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace generic_actions {

inline std::string_view taken_with(const InGeneral& g, Runtime r) {
  return r == Runtime::torch ? g.torch : r == Runtime::engine ? g.engine : g.other;
}

}  // namespace generic_actions

VLMEST_INLINE Runtime runtime_of(const Failure& f) {
  if (f.foreign) return Runtime::other;
  if (f.engine_pool || f.phase == RunPhase::server_profile) return Runtime::engine;
  for (const Frame& frame : f.frames)
    for (const char* engine : {"/vllm/", "/vllm_", "/sglang/"})
      if (frame.file.find(engine) != std::string::npos) return Runtime::engine;
  return Runtime::torch;
}

VLMEST_INLINE bool adapt(Action& a, const Failure& f) {
  if (runtime_of(f) != Runtime::other) return true;
  const ActionEntry* e = action_entry(a.id);
  if (e == nullptr || e->general.other.empty() || (e->general.acts && !e->general.acts(f))) return false;
  a.how = std::string(e->general.other);
  return true;
}

VLMEST_INLINE Runtime runtime_for(Cause cause, const Failure& f) {
  const Runtime r = runtime_of(f);
  const bool of_engines = cause == Cause::profile_run || cause == Cause::engine_budget ||
                          cause == Cause::encoder_cache || cause == Cause::kv_cache;
  return r == Runtime::torch && of_engines ? Runtime::engine : r;
}

VLMEST_INLINE std::optional<Action> generic_action(ActionId id, Runtime runtime) {
  const ActionEntry* e = action_entry(id);
  if (e == nullptr || generic_actions::taken_with(e->general, runtime).empty()) return std::nullopt;
  Action a{.id = id,
           .title = std::string(e->title),
           .fits_known = false,
           .how = std::string(generic_actions::taken_with(e->general, runtime))};
  a.generic = true;
  return a;
}

VLMEST_INLINE std::vector<Action> generic_actions_of(const Verdict& v, const Failure& f, const KnownSettings& known) {
  using namespace generic_actions;
  const Runtime runtime = runtime_for(v.cause, f);
  std::vector<Action> r;
  for (const Of& of : by_cause) {
    if (of.cause != v.cause) continue;
    for (const ActionId id : of.ids) {
      auto a = generic_action(id, runtime);
      if (!a) continue;
      const InGeneral& g = action_entry(id)->general;
      if (g.acts && !g.acts(f)) continue;
      const bool applies = !known.mode ? true : *known.mode == Mode::training ? g.training : g.inference;
      if (!applies || (known.plan != nullptr && g.in_force && g.in_force(*known.plan, known.gpu))) continue;
      if (!known.mode && g.training != g.inference) a->of = g.training ? Mode::training : Mode::inference;
      r.push_back(*std::move(a));
    }
  }
  return r;
}

}  // namespace vlmest::diagnose
