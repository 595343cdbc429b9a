// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace slow_run_detail {

VLMEST_INLINE BoundTimes bounds(const ProfileTrace& t, const SlowRun& r, const std::vector<KernelTraits>& traits,
                                const Device* device) {
  BoundTimes b;
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEvent& e = t.kernels[k];
    if (e.device != r.gpu.device || e.time.begin < r.gpu.window.begin || e.time.begin >= r.gpu.window.end) continue;
    const KernelTraits& of_name = traits[static_cast<std::size_t>(e.name)];
    if (of_name.family == KernelFamily::communication) continue;
    const auto op = r.ops.of_kernel[k];
    Ns* to = &b.unknown;
    if (op >= 0 && device != nullptr && r.ops.ops[static_cast<std::size_t>(op)].roofline.value > 0) {
      const OpDistance& d = r.ops.ops[static_cast<std::size_t>(op)];
      if (d.bound != Bound::launch) to = d.bound == Bound::compute ? &b.compute : &b.memory;
    } else if (moves_memory(of_name.family) || of_name.decode || r.phase.decoding[k]) {
      to = &b.memory;
    } else if (of_name.family != KernelFamily::other) {
      to = &b.compute;
      b.presumed = checked_add(b.presumed, e.time.length());
    }
    *to = checked_add(*to, e.time.length());
  }
  return b;
}

VLMEST_INLINE std::vector<StepTime> step_times(const ProfileTrace& t, const GpuTime& g) {
  std::vector<Annotation> marks;
  for (const auto& a : t.annotations)
    if (a.kind == AnnotationKind::step) marks.push_back(a);
  sort_stably(marks, [](auto& a, auto& b) { return a.time < b.time; });
  std::vector<StepTime> r;
  std::size_t first = 0;
  for (const Annotation& a : marks) {
    while (first < g.busy.size() && g.busy[first].end <= a.time.begin) ++first;
    StepTime s{a.name, a.time.length(), 0};
    for (std::size_t i = first; i < g.busy.size() && g.busy[i].begin < a.time.end; ++i)
      s.busy += std::max<Ns>(0, gpu_time_detail::clipped(g.busy[i], a.time).length());
    r.push_back(s);
  }
  return r;
}

VLMEST_INLINE std::array<Candidate, 7> candidates(const SlowRun& r, Ns host, Ns span) {
  const auto share = [&](Ns t) { return static_cast<double>(t) / static_cast<double>(span); };
  return {{{Cause::host_bound, share(host + r.gpu.exposed_copies), loss_share},
           {Cause::communication, share(r.gpu.exposed_communication), loss_share},
           {Cause::misaligned_gemm, r.padding_saves.value * 1e9 / static_cast<double>(span), padding_share},
           {Cause::unknown, r.gpu.share(unexplained(r)), loss_share},
           {Cause::compute_bound, share(r.bound.compute), 0},
           {Cause::bandwidth_bound, share(r.bound.memory), 0},
           {Cause::unknown, share(r.bound.unknown), 0}}};
}

VLMEST_INLINE SlowRunVerdict judge(const SlowRun& r, const NameTable& names) {
  const GpuTime& g = r.gpu;
  const std::string launches = std::to_string(r.launched) + " launches";
  // Profilers write the host's events before the device's: what is left of a file that was cut shows a device that
  // idles.
  if (r.cut && r.missing * 20 > r.launched)
    return {Cause::unknown,
            0,
            "the file ends early: of " + launches + ", " + std::to_string(r.missing) + " have no kernel in it",
            {}};
  if (g.span() <= 0 || g.all_kernels.count == 0) {
    if (r.launched > 0)
      return {Cause::unknown,
              0,
              "no kernel was recorded of " + launches + ": the profiler did not see the GPU, or a graph was captured",
              {}};
    return {
        Cause::unknown,
        0,
        r.cut ? "the file ends early, before anything of a GPU" : "nothing ran on a GPU while the trace was recorded",
        {}};
  }
  const bool corrected = r.unprofiled.estimated && r.unprofiled.span > 0;
  const Ns span = corrected ? r.unprofiled.span : g.span();
  const auto all = candidates(r, corrected ? r.unprofiled.host() : r.idle.host(), span);
  const Candidate& first = first_of(all);
  SlowRunVerdict v{first.cause, 0, "", {}};
  for (const Candidate& c : all)
    if (&c != &first && c.share >= 0.05 && c.cause != Cause::unknown) v.others.push_back({c.cause, c.share});
  sort_stably(v.others, [](auto& a, auto& b) { return a.share > b.share; });
  const double presumed = static_cast<double>(r.bound.presumed) / static_cast<double>(span);
  const bool limit = first.threshold == 0;
  if (first.cause != Cause::unknown)
    v.confidence = limit ? std::min(1.0, first.share - (first.cause == Cause::compute_bound ? presumed / 2 : 0))
                         : std::min(1.0, first.share / (2 * first.threshold));
  const double limits = all[4].share + all[5].share + all[6].share;
  const Ns computing = g.busy_time() - g.exposed_copies - g.exposed_communication;
  const std::string seen =
      "the GPU computes " + percent(g.share(computing)) + " of " + milliseconds(static_cast<double>(g.span()));
  const double without = std::min(1.0, static_cast<double>(computing) / static_cast<double>(span));
  const std::string clean = corrected ? seen + ", about " + percent(without) + " without the profiler" : seen;
  switch (v.cause) {
    case Cause::host_bound:
      v.why = clean + ": " +
              (corrected ? host_reasons(
                               r, names, [&](Idle i) { return r.unprofiled.of(i); }, span)
                         : host_reasons(
                               r, names, [&](Idle i) { return r.idle.of(i); }, span));
      break;
    case Cause::communication:
      v.why = percent(first.share) + " of the time is communication that nothing hides, of " +
              milliseconds(static_cast<double>(length(g.communicating))) + " in all";
      break;
    case Cause::misaligned_gemm:
      v.why = clean + "; products with rows at no multiple of 16 bytes take " +
              milliseconds(r.misaligned_time.value * 1e9) + ", of which padded sizes would save " +
              milliseconds(r.padding_saves.value * 1e9);
      break;
    case Cause::compute_bound:
    case Cause::bandwidth_bound:
      v.why = clean + "; " + percent(first.share / limits) + " of the kernel time is limited by " +
              (v.cause == Cause::compute_bound ? "arithmetic" : "memory");
      if (v.cause == Cause::compute_bound && 2 * presumed > first.share)
        v.why += ", as products usually are: their sizes or the GPU are not known";
      break;
    default:
      v.why = limit ? clean + "; what limits its kernels does not show"
                    : seen + ": " + percent(first.share) + " of the time it is idle, " +
                          (2 * r.idle.of(Idle::queued) > unexplained(r)
                               ? "mostly with the next kernel already called for, as where it waits for another stream "
                                 "or rank"
                               : "and the calls that ended it are not in the trace");
      break;
  }
  return v;
}

VLMEST_INLINE void count_launches(const ProfileTrace& t, SlowRun& r) {
  std::unordered_set<std::int64_t> seen;
  for (const auto& k : t.kernels) seen.insert(k.correlation);
  for (const auto& c : t.calls) {
    if (c.kind != HostCallKind::launch || c.correlation == 0) continue;
    ++r.launched;
    r.missing += seen.contains(c.correlation) ? 0 : 1;
  }
  r.cut = t.truncated;
}

}  // namespace slow_run_detail

VLMEST_INLINE SlowRun slow_run(const ProfileTrace& t, const Device* device) {
  const std::vector<KernelTraits> traits = traits_of_names(t);
  SlowRun r;
  r.gpu = gpu_time(t, busiest_device(t), traits);
  r.idle = idle_time(t, r.gpu);
  if (device != nullptr) r.unprofiled = unprofiled_run(t, r.gpu, device->launch);
  r.ops = op_distances(t, r.gpu, traits, device);
  r.phase = phase_times(t, r.gpu, traits, r.ops);
  r.bound = slow_run_detail::bounds(t, r, traits, device);
  r.steps = slow_run_detail::step_times(t, r.gpu);
  for (const auto& o : t.ops) {
    const auto n = t.names[o.name];
    if (n == "aten::_local_scalar_dense" || n == "aten::nonzero") ++r.host_reads;
  }
  for (const OpDistance& d : r.ops.ops)
    if (d.faster) {
      r.misaligned_time += d.time();
      r.padding_saves += d.padding_saves();
    }
  if (r.misaligned_time.value == 0) r.misaligned_time = {static_cast<double>(r.gpu.misaligned.time) * 1e-9};
  slow_run_detail::count_launches(t, r);
  r.verdict = slow_run_detail::judge(r, t.names);
  return r;
}

}  // namespace vlmest::diagnose
