// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/report/measured_run.hpp>

/// What a host takes to launch, out of whole runs that bench/recorder timed.
namespace vlmest::fit {

/// A time of the host: the middle of what runs say, and how far they differ, in parts of it.
struct HostTime {
  Seconds middle{};
  Spread spread{};
  std::size_t runs = 0;
};

/// Each where at least one run tells it.
struct HostTimes {
  std::optional<HostTime> launch, forward_launch, backward_launch, attention_plan;
};

namespace host {

/// A phase in which the GPU waits: it takes so much longer than its kernels that their time hardly counts.
inline constexpr double waits = 1.3;

inline std::optional<HostTime> summed_up(std::vector<double> us) {
  if (us.empty()) return std::nullopt;
  std::sort(us.begin(), us.end());
  const double middle = (us[us.size() / 2] + us[(us.size() - 1) / 2]) / 2;
  return HostTime{.middle = {middle * 1e-6}, .spread = {us.front() / middle, us.back() / middle}, .runs = us.size()};
}

/// Milliseconds of a phase for each of its kernels, in us; nothing where the GPU does not wait, or a figure is missing.
inline std::optional<double> each(std::optional<double> wall_ms, std::optional<double> gpu_ms,
                                  std::optional<double> kernels) {
  if (!wall_ms || !gpu_ms || !kernels || *kernels < 1 || *wall_ms < waits * *gpu_ms) return std::nullopt;
  return *wall_ms * 1e3 / *kernels;
}

inline std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace host

/// - launch: decode steps with attn eager, for each kernel;
/// - attention_plan: what a decode step with sdpa takes beyond its launches, where that is more than a tenth of it;
/// - forward_launch: forwards of training steps without checkpointing, for each kernel;
/// - backward_launch: the rest of those steps likewise, the optimizer's among them.
inline HostTimes host_times(std::span<const MeasuredRun> runs) {
  HostTimes r;
  const auto of_each = [&](const auto& figure) {
    std::vector<double> us;
    for (const MeasuredRun& run : runs)
      if (const auto one = figure(run)) us.push_back(*one);
    return host::summed_up(std::move(us));
  };
  const auto plain_step = [](const MeasuredRun& m) {
    return m.training && m.plan.checkpointing == Checkpointing::off && m.plan.gradient_accumulation == 1;
  };
  using Figure = std::optional<double>;
  r.launch = of_each([](const MeasuredRun& m) -> Figure {
    if (m.training || m.plan.attention != AttentionKind::eager) return std::nullopt;
    return host::each(m.figure("decode_ms"), m.figure("decode_gpu_ms"), m.figure("decode_kernels"));
  });
  r.forward_launch = of_each([&](const MeasuredRun& m) -> Figure {
    if (!plain_step(m)) return std::nullopt;
    return host::each(m.figure("forward_ms"), m.figure("forward_gpu_ms"), m.figure("forward_kernels"));
  });
  r.backward_launch = of_each([&](const MeasuredRun& m) -> Figure {
    const Figure step = m.figure("step_ms"), forward = m.figure("forward_ms");
    if (!plain_step(m) || !step || !forward) return std::nullopt;
    return host::each(*step - *forward, host::sum(m.figure("backward_gpu_ms"), m.figure("optimizer_gpu_ms")),
                      host::sum(m.figure("backward_kernels"), m.figure("optimizer_kernels")));
  });
  if (!r.launch) return r;
  r.attention_plan = of_each([&](const MeasuredRun& m) -> Figure {
    const Figure wall = m.figure("decode_ms"), kernels = m.figure("decode_kernels");
    if (m.training || m.plan.attention != AttentionKind::sdpa || !kernels ||
        !host::each(wall, m.figure("decode_gpu_ms"), kernels))
      return std::nullopt;
    const double rest = *wall * 1e3 - r.launch->middle.us() * *kernels;
    return rest > *wall * 1e2 ? Figure(rest) : std::nullopt;
  });
  return r;
}

}  // namespace vlmest::fit
