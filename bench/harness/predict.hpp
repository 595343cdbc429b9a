// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <bench/harness/statistics.hpp>
#include <bench/op/table.hpp>

#include <vlmest/analysis/dram_traffic.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/device/device.hpp>

namespace vlmest::bench {

/// What the library says of a point before it is measured.
struct Prediction {
  Bytes read{}, written{};      ///< DRAM traffic of cold operands; the compulsory bytes where no device is described
  Bytes operands{};             ///< inputs and outputs
  Bytes memory{};               ///< inputs, outputs and workspace, each rounded as torch's allocator rounds it
  std::optional<Seconds> time;  ///< where the device is described
};

/// `device` is nullptr where no description fits the GPU. Throws Error for an op that the library refuses.
inline Prediction predict(const Point& p, int compute_capability, const Device* device) {
  if (is_launch(p)) {
    Prediction r;
    if (!device) return r;
    if (p.variant == "graph") r.time = device->graph_gap;
    if (p.variant == "stream") r.time = device->kernel_floor;
    return r;
  }
  const json::SingleOp op = read_op(p, compute_capability);
  const Cost c = cost(op.op);
  Prediction r{.read = c.read, .written = c.written, .operands = op.inputs + op.outputs, .memory = op.peak};
  if (device) {
    const DramTraffic dram = dram_traffic(op.op, *device);
    r.read = dram.read;
    r.written = dram.written;
    r.time = work(op.op, *device, p.cache == Cache::cold ? Operands::from_dram : Operands::from_cache).time;
  }
  return r;
}

/// What a point costs beside its samples: choosing an algorithm, allocating, a line of output. A plan of cuDNN's is
/// compiled. Rough, for the announcement alone.
inline Seconds point_overhead(const Point& p) { return {p.variant == "cudnn" ? 60e-3 : 4e-3}; }
/// Filling with random numbers, bytes a second.
inline constexpr Bandwidth fill_rate{1.5e12};

/// About how long measuring the points takes, from their predicted times and `rule`: so that a user knows beforehand.
/// Points that the library refuses take nothing.
inline Seconds expected_duration(const std::vector<Point>& points, const Device& device, const StopRule& rule) {
  Seconds total;
  for (const Point& p : points) {
    Prediction predicted;
    try {
      predicted = predict(p, device.sm, &device);
    } catch (const Error&) {
      continue;
    }
    const Seconds call = predicted.time.value_or(Seconds{});
    const double calls = std::max(1.0, shortest_sample.value / std::max(call.value, 1e-7));
    const Seconds sample = call * std::min(calls, 256.0);
    const double samples =
        std::clamp(rule.budget.value / std::max(sample.value, 1e-7), 1.0 * rule.least, 1.0 * rule.most);
    const std::int64_t sets = p.cache == Cache::cold ? rotating_sets(predicted.operands, device.l2) : 1;
    total += sample * samples + call * 3 + predicted.operands * sets / fill_rate + point_overhead(p);
  }
  return total;
}

}  // namespace vlmest::bench
