// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/graph.hpp>
#include <vlmest/op/cufft_workspace.hpp>

namespace vlmest {

/// Adds the cuFFT plans that a graph needs and `plans` does not hold yet. torch caches a plan by kind, sizes, number of
/// transforms, strides and type (ATen/native/cuda/CuFFTPlanCache.h, CuFFTParams), so runs whose images differ in size
/// or number make further ones: collect them over the graphs of such runs, then ask plan_cache() what they take.
inline void add_fft_plans(std::vector<Fft>& plans, const Graph& g) {
  for (const Op& op : g.ops) {
    const Fft* f = std::get_if<Fft>(&op);
    if (!f) continue;
    Fft key = *f;
    key.copied = key.scaled = false;  // kernels beside the plan
    if (std::find(plans.begin(), plans.end(), key) == plans.end()) plans.push_back(key);
  }
}

/// What the plans of a set of runs hold outside the framework's allocator, as long as they stay cached.
inline FftPlanCache plan_cache(const std::vector<Fft>& plans) {
  return plan_cache(static_cast<std::int64_t>(plans.size()));
}

}  // namespace vlmest
