// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <vlmest/analysis/faster_shape.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/diagnose/evidence/trace/gpu_time.hpp>
#include <vlmest/diagnose/evidence/trace/traced_op.hpp>

namespace vlmest::diagnose {

/// All calls of one operator with equal arguments: what their kernels took, and what the device could do.
struct OpDistance {
  NameId name = 0;
  std::int32_t inputs = 0;  ///< in ProfileTrace::signatures
  Op op;
  std::int64_t calls = 0, kernels = 0;
  Ns measured = 0;     ///< of all their kernels
  Seconds roofline{};  ///< of all the calls (analysis/roofline.hpp); 0 without a device
  Seconds expected{};  ///< of all the calls, by the device's measured efficiencies (analysis/op_time.hpp)
  Bound bound = Bound::memory;
  std::optional<FasterShape> faster;

  Seconds time() const { return {static_cast<double>(measured) * 1e-9}; }
  /// What lies between the measured time and the roofline.
  Seconds lost() const { return {std::max(0.0, time().value - roofline.value)}; }
  /// What the faster shape would save of the measured time, in the proportion in which it is expected to.
  Seconds padding_saves() const {
    if (!faster || !(expected.value > 0)) return {};
    const double share = faster->saved.value * static_cast<double>(calls) / expected.value;
    return time() * std::clamp(share, 0.0, 1.0);
  }
};

struct OpDistances {
  std::vector<OpDistance> ops;          ///< by lost time, the largest first; by measured time without a device
  std::vector<std::int32_t> of_kernel;  ///< for each kernel of the trace its place in `ops`, or -1
  Ns attributed = 0;                    ///< the time of the kernels that belong to one of them
};

namespace op_distance_detail {

/// For each operator the one around it on the same thread, or -1.
std::vector<std::int32_t> parents(const std::vector<CpuOp>& ops);

void judge(OpDistance& d, const Device& device);

}  // namespace op_distance_detail

/// The operators with recorded arguments that are ops here (op_of), with the kernels that they launched on the device
/// and in the window of `g`. A kernel belongs to the innermost such operator around its launch.
OpDistances op_distances(const ProfileTrace& t, const GpuTime& g, const std::vector<KernelTraits>& traits,
                         const Device* device);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/slow_run/impl/op_distance.hpp>
#endif
