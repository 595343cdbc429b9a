// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/watch/prometheus.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

using diagnose::Metric;
using diagnose::MetricSample;
using diagnose::MetricType;
using diagnose::WatchedMemory;

/// What `gpu` is expected to show in the place of `used`: the driver counts what torch has reserved.
std::optional<Bytes> predicted(const WatchedSource& source, const diagnose::MemoryExpectation& expected) {
  return source.whole_device ? expected.reserved : expected.peak;
}

std::string signed_size(Bytes b) { return b < Bytes() ? "-" + show(Bytes() - b) : "+" + show(b); }

}  // namespace

std::string text_line(const WatchedMemory& gpu, const WatchedSource& source,
                      const diagnose::MemoryExpectation& expected) {
  std::string r = "gpu " + gpu.gpu;
  const auto add = [&r](const char* what, const std::optional<Bytes>& size) {
    if (size) r += std::string("  ") + what + " " + show(*size);
  };
  if (gpu.step) r += "  step " + grouped(*gpu.step);
  add("used", gpu.used);
  add("reserved", gpu.reserved);
  if (gpu.highest && gpu.highest != (gpu.used ? gpu.used : gpu.reserved)) add("highest", gpu.highest);
  add("predicted", predicted(source, expected));
  add("total", gpu.total);
  if (gpu.utilization) r += fmt::format("  busy {:.0f} %", *gpu.utilization * 100);
  const char* const step = gpu.step ? "step" : "reading";
  if (gpu.growth) r += fmt::format("  {} {} a {}", name(gpu.trend), signed_size(*gpu.growth), step);
  if (gpu.steps_to_oom)
    r += fmt::format("  out of memory in {} {}{}", grouped(*gpu.steps_to_oom), step, *gpu.steps_to_oom == 1 ? "" : "s");
  return r;
}

std::string json_line(const WatchedMemory& gpu, const WatchedSource& source,
                      const diagnose::MemoryExpectation& expected) {
  nlohmann::ordered_json r = {{"schema_version", 1}, {"source", source.name}, {"gpu", gpu.gpu}};
  const auto add = [&r](const char* key, const std::optional<Bytes>& size) {
    if (size) r[key] = size->value();
  };
  r["readings"] = gpu.readings;
  if (gpu.step) r["step"] = *gpu.step;
  add("used_bytes", gpu.used);
  add("reserved_bytes", gpu.reserved);
  add("highest_bytes", gpu.highest);
  add("total_bytes", gpu.total);
  add("predicted_peak_bytes", expected.peak);
  add("predicted_reserved_bytes", expected.reserved);
  if (gpu.utilization) r["utilization"] = significant(*gpu.utilization);
  if (gpu.growth) r["trend"] = name(gpu.trend);
  add("growth_bytes_per_step", gpu.growth);
  if (gpu.steps_to_oom) r["steps_to_oom"] = *gpu.steps_to_oom;
  return r.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string metrics_text(std::span<const WatchedMemory> gpus, const WatchedSource& source,
                         const diagnose::MemoryExpectation& expected) {
  std::vector<Metric> metrics;
  const auto add = [&](std::string name, std::string help, auto value, MetricType type = MetricType::gauge) {
    Metric m{.name = std::move(name), .help = std::move(help), .type = type, .samples = {}};
    for (const WatchedMemory& g : gpus)
      if (const auto v = value(g)) m.samples.push_back({{{"gpu", g.gpu}, {"source", source.name}}, *v});
    metrics.push_back(std::move(m));
  };
  const auto bytes = [](const std::optional<Bytes>& b) {
    return b ? std::optional(b->value()) : std::optional<std::int64_t>();
  };
  add("vlmest_memory_used_bytes",
      "GPU memory in use: allocated by PyTorch where the source is a training log, by all processes where it is the "
      "driver.",
      [&](const WatchedMemory& g) { return bytes(g.used); });
  add("vlmest_memory_reserved_bytes", "GPU memory that PyTorch's allocator holds, its cache included.",
      [&](const WatchedMemory& g) { return bytes(g.reserved); });
  add("vlmest_memory_highest_bytes", "Highest peak of the memory in use since the run began or the watch did.",
      [&](const WatchedMemory& g) { return bytes(g.highest); });
  add("vlmest_memory_total_bytes", "GPU memory that there is.", [&](const WatchedMemory& g) { return bytes(g.total); });
  add("vlmest_memory_predicted_peak_bytes", "Estimated peak of the memory that PyTorch allocates.",
      [&](const WatchedMemory&) { return bytes(expected.peak); });
  add("vlmest_memory_predicted_reserved_bytes", "Estimated peak of the memory that PyTorch's allocator holds.",
      [&](const WatchedMemory&) { return bytes(expected.reserved); });
  add("vlmest_memory_growth_bytes_per_step",
      "Growth of the memory in use per training step, per reading where the source knows no steps.",
      [&](const WatchedMemory& g) { return bytes(g.growth); });
  add("vlmest_estimated_steps_to_oom",
      "Training steps, or readings, until memory ends; absent while memory does not go on growing or its end is not "
      "known.",
      [](const WatchedMemory& g) { return g.steps_to_oom; });
  add("vlmest_training_step", "Last training step that was read.", [](const WatchedMemory& g) { return g.step; });
  add("vlmest_gpu_utilization_ratio", "Share of the time in which a kernel was running.",
      [](const WatchedMemory& g) { return g.utilization; });
  add(
      "vlmest_watch_readings_total", "Readings of this run.",
      [](const WatchedMemory& g) { return std::optional(g.readings); }, MetricType::counter);
  return prometheus_text(metrics);
}

}  // namespace vlmest::tool
