// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/trace/idle_time.hpp>
#include <vlmest/diagnose/evidence/trace/unprofiled.hpp>
#include <vlmest/diagnose/verdict/slow_run/op_distance.hpp>
#include <vlmest/diagnose/verdict/slow_run/traced_phase.hpp>
#include <vlmest/diagnose/verdict/slow_run/words.hpp>

/// Why a run is slow, from a profiler's trace.
namespace vlmest::diagnose {

/// One annotated step.
struct StepTime {
  NameId name = 0;
  Ns host = 0;  ///< how long the host took for it
  Ns busy = 0;  ///< of that, how long the device ran anything
};

/// Time of kernels by what limits them. Of `compute` a part is no more than presumed: products and attention whose
/// sizes or device are not known, by their kernels' names.
struct BoundTimes {
  Ns compute = 0, memory = 0, unknown = 0, presumed = 0;
};

/// A cause with the share of the time that it is to blame for, or, of what limits kernels, that they take.
struct CauseShare {
  Cause cause = Cause::unknown;
  double share = 0;
};

struct SlowRunVerdict {
  Cause cause = Cause::unknown;
  /// Of a loss, a half at the share from which it counts, 1 at twice that; of what limits kernels, its share of the
  /// time, of which what is presumed counts half.
  double confidence = 0;
  std::string why;                 ///< one line with the figures
  std::vector<CauseShare> others;  ///< the other causes with at least a twentieth of the time, the largest first
};

struct SlowRun {
  GpuTime gpu;
  IdleTime idle;
  UnprofiledRun unprofiled;  ///< with a device, and where the profiler slowed the host down
  PhaseTimes phase;
  BoundTimes bound;
  OpDistances ops;
  std::vector<StepTime> steps;
  std::int64_t launched = 0;    ///< launches of kernels, on all devices
  std::int64_t missing = 0;     ///< of them, those whose kernel is not in the trace
  bool cut = false;             ///< the file ends early
  std::int64_t host_reads = 0;  ///< operators that wait for a value of the device: .item(), nonzero
  Seconds misaligned_time{};    ///< products whose rows begin at no multiple of 16 bytes
  Seconds padding_saves{};      ///< of it, what padded sizes would save; without sizes or a device unknown, 0
  SlowRunVerdict verdict;
};

/// Shares of the time from which on something counts as the cause. What is lost to waiting is one where the run would
/// be a third faster without it; misaligned products, where padding saves a tenth, as for a single op
/// (faster_shape.hpp).
inline constexpr double loss_share = 1.0 / 3, padding_share = 0.1;

namespace slow_run_detail {

BoundTimes bounds(const ProfileTrace& t, const SlowRun& r, const std::vector<KernelTraits>& traits,
                  const Device* device);

std::vector<StepTime> step_times(const ProfileTrace& t, const GpuTime& g);

/// The host's waits that count, in words. `of` gives the time for which each of them is to blame, of `span`.
template <class Of>
std::string host_reasons(const SlowRun& r, const NameTable& names, Of of, Ns span) {
  std::string s;
  const auto add = [&](Ns t, const std::string& what) {
    const double share = static_cast<double>(t) / static_cast<double>(span);
    if (share < 0.05) return;
    s += (s.empty() ? "" : ", ") + percent(share) + " " + what;
  };
  const IdleTime& i = r.idle;
  const Totals& kernels = r.gpu.all_kernels;
  add(of(Idle::data_loader), "waiting for the data loader");
  add(of(Idle::allocation), "in " + std::to_string(i.allocations.count) + " cudaMalloc and " +
                                std::to_string(i.frees.count) + " cudaFree calls");
  add(of(Idle::synchronise), "after " + std::to_string(i.synchronisations.count) + " synchronisations with the host");
  add(of(Idle::host_work),
      "in long host work" + (r.idle.working == 0 ? std::string() : ", most of it in " + word(names[r.idle.working])));
  add(of(Idle::launch), "waiting for launches (one every " + microseconds(i.launch_interval) + ", a kernel takes " +
                            microseconds(kernels.count > 0 ? kernels.time / kernels.count : 0) + ")");
  add(r.gpu.exposed_copies, "in copies from or to the host");
  return s;
}

struct Candidate {
  Cause cause;
  double share;      ///< of the time
  double threshold;  ///< from which on it is a loss; 0: it is what kernels are limited by
  bool loss() const { return threshold > 0 && share >= threshold; }
};

/// Time in which the device had work or nothing is known of what it waited for: another stream or another rank, or
/// kernels and calls that are not in the trace.
inline Ns unexplained(const SlowRun& r) { return r.idle.of(Idle::queued) + r.idle.of(Idle::unknown); }

/// Every cause with its share of `span`, `host` of which the device waited for the host.
std::array<Candidate, 7> candidates(const SlowRun& r, Ns host, Ns span);

/// Losses before limits: time that need not pass at all, before what the kernels that must run are limited by. Of the
/// losses, first those with a cause; without any, the largest share, be it a loss too small to count as one.
inline const Candidate& first_of(const std::array<Candidate, 7>& all) {
  const auto rank = [](const Candidate& c) { return !c.loss() ? 0 : c.cause == Cause::unknown ? 1 : 2; };
  return *std::max_element(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.share < b.share;
  });
}

SlowRunVerdict judge(const SlowRun& r, const NameTable& names);

}  // namespace slow_run_detail

namespace slow_run_detail {

void count_launches(const ProfileTrace& t, SlowRun& r);

}  // namespace slow_run_detail

/// The diagnosis. `device` is what the trace was recorded on; without it ops are not compared with anything. Throws
/// Overflow for a trace whose times add up to centuries.
SlowRun slow_run(const ProfileTrace& t, const Device* device = nullptr);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/slow_run/impl/slow_run.hpp>
#endif
