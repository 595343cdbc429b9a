// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// Memory while a run goes on: readings in, and at any time what they say of each GPU.
namespace vlmest::diagnose {

/// One reading of one GPU. Which of the figures there are depends on who gives them: a training log may know what torch
/// has allocated and reserved, nvidia-smi and NVML what all processes use and how much the GPU has.
struct MemoryReading {
  std::string gpu = "0";
  std::optional<std::int64_t> step;  ///< of the training; without one, readings are counted
  std::optional<Bytes> used;
  std::optional<Bytes> peak;      ///< most that was used since the reading before, where it is known
  std::optional<Bytes> reserved;  ///< by torch's allocator: what it uses and what it keeps
  std::optional<Bytes> total;
  std::optional<double> utilization;  ///< 0 to 1
};

/// What a line of a log says of a GPU. A rank stands for its GPU; what tensors take is used rather than what the device
/// shows, a peak that is reserved stands in for what is reserved.
MemoryReading reading_of(const MemoryRow& row);

/// What is known beforehand.
struct MemoryExpectation {
  std::optional<Bytes> peak, reserved;  ///< predicted for the run, as max_memory_allocated() and max_memory_reserved()
  std::optional<Bytes> total;           ///< of the GPU, where readings do not say it
  std::optional<Bytes> limit;           ///< where memory ends, whatever readings say
};

/// A GPU at its last reading.
struct WatchedMemory {
  std::string gpu;
  std::int64_t readings = 0;  ///< of this run
  std::optional<std::int64_t> step;
  std::optional<Bytes> used, reserved, total;
  std::optional<Bytes> highest;  ///< of what was used in this run, peaks within its steps included
  std::optional<double> utilization;
  Growth trend = Growth::too_few;  ///< see find_leak(): of the last readings
  std::optional<Bytes> growth;     ///< per step, or per reading where there are no steps
  std::optional<std::int64_t>
      steps_to_oom;  ///< empty where memory does not go on growing, or where it ends is not known
};

/// Keeps of each GPU its last readings, which growth is computed from, and nothing that grows with the run.
class MemoryMonitor {
 public:
  /// Readings that growth is computed from: enough to see through the ups and downs of steps, few enough to forget how
  /// a run began.
  static constexpr std::size_t window = 256;
  /// GPUs, or ranks, that are told apart; readings of further ones are dropped.
  static constexpr std::size_t most_gpus = 1024;

  explicit MemoryMonitor(MemoryExpectation expected = {}) : expected_(std::move(expected)) {}

  /// A step below the one before is a new run: what the GPU did before is forgotten. A reading without any size says
  /// nothing.
  void add(const MemoryReading& r) {
    if (!r.used && !r.peak && !r.reserved) return;
    Gpu* const found = gpu(r.gpu);
    if (found == nullptr) return;
    Gpu& g = *found;
    if (r.step && g.last.step && *r.step < *g.last.step) {
      g = Gpu();
      g.last.gpu = r.gpu;
    }
    WatchedMemory& m = g.last;
    ++m.readings;
    g.at = ++readings_;
    if (r.step) m.step = r.step;
    if (r.used) m.used = r.used;
    if (r.reserved) m.reserved = r.reserved;
    if (r.total) m.total = r.total;
    if (r.utilization) m.utilization = r.utilization;
    const Figure figure = r.used ? Figure::used : r.peak ? Figure::peak : Figure::reserved;
    if (figure < g.figure) return;
    if (figure > g.figure) {
      g.figure = figure;
      g.points.clear();
      m.highest.reset();
    }
    const Bytes level = r.used ? *r.used : r.peak ? *r.peak : *r.reserved;
    const Bytes high = std::max(level, r.peak.value_or(level));
    m.highest = std::max(m.highest.value_or(high), high);
    g.points.push_back({static_cast<double>(m.step.value_or(m.readings)), level, high});
    if (g.points.size() > window) g.points.pop_front();
  }

  /// Of all GPUs and runs.
  std::int64_t readings() const { return readings_; }

  /// GPUs in the order in which they were first read; those with a reading later than the first `since` ones.
  std::vector<WatchedMemory> gpus(std::int64_t since = 0) const {
    std::vector<WatchedMemory> r;
    for (const Gpu& g : gpus_)
      if (g.at > since) r.push_back(judged(g));
    return r;
  }

 private:
  /// What growth is told by: the best figure that the GPU's readings have.
  enum class Figure : std::uint8_t { reserved, peak, used };
  struct Point {
    double step = 0;
    Bytes level, high;  ///< high: with the peak within the step
  };
  struct Gpu {
    WatchedMemory last;
    Figure figure = Figure::reserved;
    std::deque<Point> points;
    std::int64_t at = 0;  ///< number of its last reading
  };

  Gpu* gpu(const std::string& name) {
    for (Gpu& g : gpus_)
      if (g.last.gpu == name) return &g;
    if (gpus_.size() == most_gpus) return nullptr;
    gpus_.emplace_back().last.gpu = name;
    return &gpus_.back();
  }

  WatchedMemory judged(const Gpu& g) const {
    WatchedMemory m = g.last;
    if (expected_.limit || !m.total) m.total = expected_.limit ? expected_.limit : expected_.total;
    Points points;
    Bytes within{};  // by how much a step's peak exceeds what is used at its end
    for (const Point& p : g.points) {
      points.emplace_back(p.step, static_cast<double>(p.level.value()));
      within = std::max(within, p.high - p.level);
    }
    const Bytes left = m.total ? std::max(*m.total - within, Bytes(1)) : Bytes();
    const LeakReport report = find_leak(points, left);
    if (report.growth == Growth::too_few) return m;
    m.trend = report.growth;
    m.growth = Bytes(std::llround(std::clamp(report.bytes_per_step, -4e18, 4e18)));
    if (report.end_step)
      m.steps_to_oom = static_cast<std::int64_t>(std::clamp(*report.end_step - report.last_step + 1e-6, 0.0, 4e18));
    return m;
  }

  MemoryExpectation expected_;
  std::vector<Gpu> gpus_;
  std::int64_t readings_ = 0;
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/watch/impl/monitor.hpp>
#endif
