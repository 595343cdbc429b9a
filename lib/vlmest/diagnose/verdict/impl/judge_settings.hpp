// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/reading.hpp>
#include <vlmest/diagnose/inversion/run/outcome.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_settings.hpp>
#include <vlmest/diagnose/verdict/rules.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/parallel/placement.hpp>
#include <vlmest/parallel/states.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace settings_verdict {

inline Bytes part(Bytes b, std::int64_t n) { return n == 0 ? Bytes{} : Bytes(b.value() / n); }

/// What DeepSpeed's optimizer holds of a run beyond what torch's does, on all GPUs together.
inline Bytes beyond_torch(const Plan& p, const TrainingEstimate& e) {
  const bool adam = p.optimizer == Optimizer::adamw || p.optimizer == Optimizer::adamw_fused;
  if (!adam || p.amp || bits(p.dtype) != 16) return {};
  const Bytes states(checked_mul(12, e.trainable.value()));
  return states > e.optimizer ? states - e.optimizer : Bytes{};
}

/// What each GPU holds of a training, the largest first.
inline std::vector<MemoryPart> parts(const Settings& s, const TrainingEstimate& e, const Graph& g, const Outcome& o) {
  const parallel::Shares share = parallel::shares(s.placement);
  std::vector<MemoryPart> r{{Cause::weights, part(parallel::weight_bytes(g).all, share.weights)},
                            {Cause::gradients, part(e.gradients, share.gradients)},
                            {Cause::optimizer_state, part(e.optimizer, share.optimizer)}};
  Bytes states{};
  for (const MemoryPart& p : r) states += p.bytes;
  // What the step has beside the states are the optimizer's temporaries.
  if (o.peak > states && o.peaks[2] == o.peak)
    r.back().bytes += o.peak - states;
  else if (o.peak > states)
    r.push_back({Cause::activations, o.peak - states});
  sort_stably(r, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return r;
}

}  // namespace settings_verdict

VLMEST_INLINE Verdict judge_settings(const Settings& s, const Device& device, KnownOfRun known, Estimator& estimator) {
  const Outcome o = evaluate(s, device, Mode::training, estimator);
  const TrainingEstimate e = estimator.training_work(s.vlm, s.plan, device);
  Verdict v{.live = settings_verdict::parts(s, e, estimator.training_graph(), o)};
  Bytes peak = o.peak;
  bool fits = o.fits;
  if (const Bytes more =
          settings_verdict::part(settings_verdict::beyond_torch(s.plan, e), parallel::shares(s.placement).optimizer);
      known.deepspeed && more > Bytes{}) {
    peak += more;
    fits = fits && peak <= device.usable_bytes;
    for (MemoryPart& p : v.live)
      if (p.cause == Cause::optimizer_state) p.bytes += more;
    sort_stably(v.live, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }
  v.predicted_peak = peak;
  v.mode = Mode::training;
  v.why = "no message of an allocator is in this text; by the settings that are known each GPU needs " +
          in_words(peak) + ": " + oom_verdict::live_words(v.live);
  if (peak > o.peak) v.why += ", with the fp32 copies of the weights and the fp32 moments that DeepSpeed holds";
  if (!known.device) {
    v.why += ". --device says whether that fits.";
    return v;
  }
  v.limit = device.usable_bytes;
  v.why += ", and has " + in_words(device.usable_bytes) + ".";
  if (fits) {
    v.why +=
        " That fits: if it was a lack of the GPU's memory, then with more or larger pictures than these, longer "
        "sequences, or a setting that the text does not have; otherwise it was the host's.";
    return v;
  }
  v.cause = v.live.front().cause;
  v.confidence = confidence(Basis::settings_alone);
  return v;
}

VLMEST_INLINE std::optional<Verdict> judge_partition(const Failure& f, const Settings& s, const Device& device,
                                                     Estimator& estimator) {
  const int gpus = s.placement.gpus;
  if (!f.requested || gpus < 2 || !cut_off::partition_from.reached(f.requested->value)) return std::nullopt;
  const double asked = static_cast<double>(f.requested->value.value());
  // Recipes freeze the vision tower without a flag that a text would show, as LLaVA's do in its code.
  for (const bool vision : {true, false}) {
    Plan plan = s.plan;
    if (!vision && !std::exchange(plan.trainable.vision, false)) break;
    const auto trained = estimator.training_work(s.vlm, plan, device).trainable.value();
    for (const std::int64_t bytes : {4, 2}) {
      const double part = static_cast<double>(trained) * static_cast<double>(bytes) / gpus;
      if (cut_off::partition.reached(std::abs(asked / part - 1))) continue;
      Verdict v{.cause = Cause::optimizer_state, .confidence = confidence(Basis::partition)};
      v.why = "it is the part of one of " + std::to_string(gpus) + " GPUs of " + (vision ? "all " : "") +
              std::to_string(trained) + " parameters" + (vision ? " that are trained" : " outside the vision tower") +
              " in " + (bytes == 4 ? "fp32" : "16 bits") + ", " + in_words(Bytes(static_cast<std::int64_t>(part))) +
              ": ZeRO's copy of the weights, a moment of the optimizer, or their gradients.";
      v.tensor = DescribedTensor{.name = "part of the trained parameters",
                                 .role = Role::optimizer_state,
                                 .shape = {(trained + gpus - 1) / gpus},
                                 .dtype = bytes == 4 ? "fp32" : "bf16",
                                 .bytes = Bytes((trained + gpus - 1) / gpus * bytes)};
      v.mode = Mode::training;
      return v;
    }
  }
  return std::nullopt;
}

}  // namespace vlmest::diagnose
