// SPDX-License-Identifier: Apache-2.0
// A profiler's trace, and the diagnosis of the run.
#include <cmath>

#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/json/kineto.hpp>

#include "device.hpp"
#include "target.hpp"

namespace {

using namespace vlmest;
using namespace vlmest::diagnose;
using fuzz::require;

void check(const SlowRun& r) {
  const GpuTime& g = r.gpu;
  require(g.span() >= 0 && g.busy_time() >= 0 && g.busy_time() <= g.span(), "busy longer than the window");
  Ns idle = 0;
  for (const Ns n : r.idle.by_cause) {
    require(n >= 0, "negative idle time");
    idle += n;
  }
  require(idle == g.idle(), "the causes of idle time do not add up to it");
  require(g.exposed_communication >= 0 && g.exposed_copies >= 0 && g.exposed_copies <= g.busy_time(), "exposed time");
  Ns families = 0, names = 0;
  for (const Totals& f : g.families) families += f.time;
  for (const NamedTotals& k : g.kernels) names += k.time;
  require(families == g.all_kernels.time && names == families, "kernels do not add up");
  require(r.bound.compute + r.bound.memory + r.bound.unknown <= families, "bounds of more than all kernels");
  require(r.ops.attributed <= families, "operators of more than all kernels");
  for (const OpDistance& d : r.ops.ops)
    require(d.calls > 0 && d.kernels >= d.calls && std::isfinite(d.lost().value) && d.padding_saves().value >= 0,
            "ops");
  require(r.verdict.confidence >= 0 && r.verdict.confidence <= 1 && !r.verdict.why.empty(), "the verdict");
  require(r.verdict.why.find('\n') == std::string::npos, "a reason of several lines");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text(data, size);
  try {
    const ProfileTrace t = json::read_kineto(input, "input");
    check(slow_run(t, &fuzz::device));
    check(slow_run(t));
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
