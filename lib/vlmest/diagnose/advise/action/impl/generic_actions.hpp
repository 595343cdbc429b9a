// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/advise/action/actions.hpp>
#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/diagnose/advise/action/remedies.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace generic_actions {

inline const How* how_of(std::string_view id) {
  const auto found = std::find_if(hows.begin(), hows.end(), [&](const How& h) { return h.id == id; });
  return found == hows.end() ? nullptr : &*found;
}
inline std::string_view taken_with(const How& h, Runtime r) {
  return r == Runtime::torch ? h.torch : r == Runtime::engine ? h.engine : h.other;
}

/// That of the catalogue, or of what acts on memory that no setting of the model changes (remedies.hpp).
inline std::string title_of(std::string_view id) {
  for (const ActionEntry& e : action_entries())
    if (e.id == id) return std::string(e.title);
  for (const auto& [known, title] : remedy_titles)
    if (known == id) return std::string(title);
  return std::string(id);
}

/// MLX has no switch for its fused attention, its models call it or do not. A call that failed in sdpa is not helped by
/// it, and an engine that failed with a request has no share to spare.
inline bool has_switch(std::string_view id, const Failure& f) {
  if (id == "attention-sdpa")
    return std::none_of(f.frames.begin(), f.frames.end(), [](const Frame& x) {
      return x.code.find("scaled_dot_product_attention") != std::string::npos ||
             x.function.find("sdpa_attention") != std::string::npos;
    });
  if (id == "engine-share") return !f.requested;
  return id != "attention-flash" || f.backend != MemoryBackend::mlx;
}

VLMEST_INLINE bool in_force(std::string_view id, const Plan& p, const Gpu& gpu) {
  if (id == "attention-flash")
    return p.attention == AttentionKind::flash || !holds(ArchitectureRule::flash_attn_2, gpu);
  if (id == "checkpointing-full") return p.checkpointing == Checkpointing::full;
  if (id == "lora-16" || id == "qlora") return p.lora.rank > 0 && (id == "lora-16" || p.weights == DType::nf4);
  if (id == "weights-nf4") return p.weights && bits(*p.weights) <= 4;
  if (id == "weights-int8") return p.weights && bits(*p.weights) <= 8;
  if (id == "weights-bf16") return p.dtype != DType::fp32;
  if (id == "optimizer-8bit") return p.optimizer == Optimizer::adamw_8bit || p.optimizer == Optimizer::adamw_bnb_8bit;
  if (id == "freeze-vision") return !p.trainable.vision || p.lora.rank > 0;
  return false;
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
  const generic_actions::How* h = generic_actions::how_of(a.id);
  if (h == nullptr || h->other.empty() || !generic_actions::has_switch(a.id, f)) return false;
  a.how = std::string(h->other);
  return true;
}

VLMEST_INLINE Runtime runtime_for(Cause cause, const Failure& f) {
  const Runtime r = runtime_of(f);
  const bool of_engines = cause == Cause::profile_run || cause == Cause::engine_budget ||
                          cause == Cause::encoder_cache || cause == Cause::kv_cache;
  return r == Runtime::torch && of_engines ? Runtime::engine : r;
}

VLMEST_INLINE std::optional<Action> generic_action(std::string_view id, Runtime runtime) {
  using namespace generic_actions;
  const How* h = how_of(id);
  if (h == nullptr || taken_with(*h, runtime).empty()) return std::nullopt;
  Action a{
      .id = std::string(id), .title = title_of(id), .fits_known = false, .how = std::string(taken_with(*h, runtime))};
  a.generic = true;
  return a;
}

VLMEST_INLINE std::vector<Action> generic_actions_of(const Verdict& v, const Failure& f, const KnownSettings& known) {
  using namespace generic_actions;
  const Runtime runtime = runtime_for(v.cause, f);
  std::vector<Action> r;
  for (const Of& of : by_cause) {
    if (of.cause != v.cause) continue;
    for (const std::string_view id : of.ids) {
      auto a = generic_action(id, runtime);
      if (!a || !has_switch(id, f)) continue;
      const How& h = *how_of(id);
      const bool applies = !known.mode ? true : *known.mode == Mode::training ? h.training : h.inference;
      if (!applies || (known.plan != nullptr && in_force(id, *known.plan, known.gpu))) continue;
      if (!known.mode && h.training != h.inference) a->of = h.training ? Mode::training : Mode::inference;
      r.push_back(*std::move(a));
    }
  }
  return r;
}

}  // namespace vlmest::diagnose
