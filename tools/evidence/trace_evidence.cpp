// SPDX-License-Identifier: Apache-2.0
#include "evidence/trace_evidence.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/trace/traced_device.hpp>

#include "catalogue.hpp"
#include "files.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;
using Json = nlohmann::ordered_json;

constexpr std::size_t shown_ops = 10;

double milliseconds(Ns t) { return significant(static_cast<double>(t) / 1e6); }

Json op_json(const ProfileTrace& t, const OpDistance& d) {
  Json j = {{"op", t.names[d.name]},
            {"calls", d.calls},
            {"measured_ms", milliseconds(d.measured)},
            {"roofline_ms", significant(d.roofline.value * 1e3)},
            {"expected_ms", significant(d.expected.value * 1e3)},
            {"bound", name(d.bound)}};
  if (d.padding_saves().value > 0) j["padding_saves_ms"] = significant(d.padding_saves().value * 1e3);
  return j;
}

/// The shipped description of the GPU that a trace was recorded on.
std::optional<Device> traced_device(const ProfileTrace& t) {
  const std::int32_t gpu = busiest_device(t);
  for (const TracedDevice& d : t.devices)
    if (d.id == gpu)
      for (const std::string& name : shipped("device"))
        if (Device known = find_device(name); describes(known, d)) return known;
  return std::nullopt;
}

}  // namespace

Evidence trace_evidence(const ProfileTrace& t, std::optional<Device> device) {
  Evidence e;
  e.kind = "trace";
  if (!device) device = traced_device(t);
  SlowRun r = slow_run(t, device ? &*device : nullptr);
  const GpuTime& g = r.gpu;
  Json idle = Json::object(), families = Json::array(), ops = Json::array(), steps = Json::array();
  for (std::size_t i = 0; i < idle_causes.size(); ++i)
    if (r.idle.by_cause[i] > 0) idle[std::string(idle_causes[i])] = milliseconds(r.idle.by_cause[i]);
  for (std::size_t i = 0; i < g.families.size(); ++i)
    if (g.families[i].count > 0)
      families.push_back(
          {{"family", kernel_families[i]}, {"kernels", g.families[i].count}, {"ms", milliseconds(g.families[i].time)}});
  for (std::size_t i = 0; i < std::min(r.ops.ops.size(), shown_ops); ++i) ops.push_back(op_json(t, r.ops.ops[i]));
  for (const StepTime& s : r.steps)
    steps.push_back({{"name", t.names[s.name]}, {"ms", milliseconds(s.host)}, {"busy_ms", milliseconds(s.busy)}});
  e.facts = {{"gpu", g.device},
             {"compared_with", device ? Json(device->name) : Json(nullptr)},
             {"span_ms", milliseconds(g.span())},
             {"busy_ms", milliseconds(g.busy_time())},
             {"phase", name(r.phase.phase)},
             {"kernels", g.all_kernels.count},
             {"launches", r.idle.launches.count},
             {"launch_interval_us", significant(static_cast<double>(r.idle.launch_interval) / 1e3)},
             {"synchronisations", r.idle.synchronisations.count},
             {"exposed_communication_ms", milliseconds(g.exposed_communication)},
             {"exposed_copies_ms", milliseconds(g.exposed_copies)},
             {"idle_ms", std::move(idle)},
             {"families", std::move(families)},
             {"ops", std::move(ops)}};
  if (!steps.empty()) e.facts["steps"] = std::move(steps);
  e.lines.push_back(fmt::format("{:.1f} ms, of it the GPU was busy {:.1f} ms ({:.0f} %) with {} kernels",
                                static_cast<double>(g.span()) / 1e6, static_cast<double>(g.busy_time()) / 1e6,
                                100 * g.share(g.busy_time()), g.all_kernels.count));
  if (!device && g.all_kernels.count > 0)
    e.lines.push_back("the GPU is none that ships with vlmest: --device compares its operations");
  for (std::size_t i = 0; device && i < std::min<std::size_t>(r.ops.ops.size(), 5); ++i) {
    const OpDistance& d = r.ops.ops[i];
    e.lines.push_back(fmt::format("{} x {}: {}, the roofline allows {}, expected {} ({} bound)", d.calls,
                                  t.names[d.name], show(d.time()), show(d.roofline), show(d.expected), name(d.bound)));
  }
  if (t.truncated) e.lines.push_back("the file ends in the middle: events are missing");
  if (t.foreign > 0)
    e.lines.push_back(fmt::format("{} events on an accelerator that is no GPU are not looked at", t.foreign));
  if (t.broken > 0) e.lines.push_back(fmt::format("{} events could not be read", t.broken));
  e.verdict = Verdict{.cause = r.verdict.cause, .confidence = r.verdict.confidence, .why = r.verdict.why};
  e.slow = std::move(r);
  return e;
}

}  // namespace vlmest::tool
