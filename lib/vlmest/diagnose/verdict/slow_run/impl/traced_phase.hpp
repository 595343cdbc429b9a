// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/diagnose/verdict/slow_run/traced_phase.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE PhaseTimes phase_times(const ProfileTrace& t, const GpuTime& g, const std::vector<KernelTraits>& traits,
                                     const OpDistances& ops) {
  PhaseTimes r;
  r.decoding.assign(t.kernels.size(), false);
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEvent& e = t.kernels[k];
    if (e.device == g.device && e.time.begin >= g.window.begin && e.time.begin < g.window.end) order.push_back(k);
  }
  sort_stably(order, [&](std::size_t a, std::size_t b) { return t.kernels[a].time.begin < t.kernels[b].time.begin; });
  enum class Seen { nothing, prefill, decode };
  bool training = false;
  std::size_t products = 0, rows = 0;
  std::vector<Seen> seen(order.size(), Seen::nothing);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto k = order[i];
    const KernelTraits& of_name = traits[static_cast<std::size_t>(t.kernels[k].name)];
    training = training || of_name.backward || of_name.family == KernelFamily::optimizer;
    const auto op = ops.of_kernel.empty() ? -1 : ops.of_kernel[k];
    const Attention* a = op < 0 ? nullptr : std::get_if<Attention>(&ops.ops[static_cast<std::size_t>(op)].op);
    if (a != nullptr)
      seen[i] = a->q_len == 1 ? Seen::decode : Seen::prefill;
    else if (of_name.family == KernelFamily::attention)
      seen[i] = of_name.decode ? Seen::decode : Seen::prefill;
    if (seen[i] == Seen::decode) ++r.decode_attentions;
    if (seen[i] == Seen::prefill) ++r.prefill_attentions;
    if (of_name.family != KernelFamily::matmul) continue;
    ++products;
    rows += of_name.decode ? 1 : 0;
  }
  if (r.decode_attentions + r.prefill_attentions == 0 && 2 * rows > products)
    for (std::size_t i = 0; i < order.size(); ++i)
      if (const KernelTraits& k = traits[static_cast<std::size_t>(t.kernels[order[i]].name)];
          k.family == KernelFamily::matmul)
        seen[i] = k.decode ? Seen::decode : Seen::prefill;
  const auto first = std::find_if(seen.begin(), seen.end(), [](Seen s) { return s != Seen::nothing; });
  Seen now = first == seen.end() ? Seen::nothing : *first;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (seen[i] != Seen::nothing) now = seen[i];
    const Ns time = t.kernels[order[i]].time.length();
    if (now == Seen::decode) {
      r.decode = checked_add(r.decode, time);
      r.decoding[order[i]] = true;
    } else if (now == Seen::prefill) {
      r.prefill = checked_add(r.prefill, time);
    }
  }
  // A tenth of the time in the other phase is still one phase: the first token after a prefill, or the last prefill.
  const Ns both = checked_add(r.prefill, r.decode);
  if (training)
    r.phase = TracedPhase::training;
  else if (both == 0)
    r.phase = TracedPhase::unknown;
  else if (r.decode < both / 10)
    r.phase = TracedPhase::prefill;
  else if (r.prefill < both / 10)
    r.phase = TracedPhase::decode;
  else
    r.phase = TracedPhase::prefill_and_decode;
  return r;
}

}  // namespace vlmest::diagnose
