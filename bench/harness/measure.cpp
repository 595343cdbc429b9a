// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <bench/harness/measure.hpp>
#include <bench/op/prepare.hpp>
#include <kernels/cuda/device.hpp>
#include <kernels/cuda/fill.hpp>

namespace vlmest::bench {
namespace {

/// "12.3 GB", for messages.
std::string spelt(Bytes b) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GB", static_cast<double>(b.value()) / 1e9);
  return text;
}

std::string reason(const Error& e) {
  return e.where + ": " + e.what_happened + (e.hint.empty() ? "" : " (" + e.hint + ")");
}

Bytes size_of(const std::vector<Operand>& operands) {
  Bytes r;
  for (const Operand& o : operands) r += o.size();
  return r;
}

/// A device that idled runs at a low clock: half a second of writing random numbers wakes it. The pool keeps the
/// memory, from which nearly all points are served then.
void wake(Pool& pool, const cuda::Stream& stream) {
  const PoolBuffer buffer(pool, std::min(Bytes(std::int64_t{16} << 30), Bytes(pool.free().value() / 4)), stream.get());
  const cuda::Event from, to;
  from.record(stream.get());
  for (int i = 0; i < 1000; ++i) {
    cuda::fill_uniform(buffer.data(), Elements(buffer.size().value() / 4), DType::fp32, -1, 1,
                       static_cast<std::uint64_t>(i), stream.get());
    to.record(stream.get());
    to.synchronize();
    if (cuda::elapsed(from, to) >= Seconds{0.5}) break;
  }
}

/// Below three quarters of its clock a device under load is held down, whatever the driver says (nvbench draws the same
/// line: NVIDIA/nvbench, docs/cli_help.md, --throttle-threshold).
constexpr double throttled_below = 0.75;

/// How many calls to watch: no longer than `most` altogether, but two.
int calls_within(Seconds most, Seconds call, double wanted) {
  const double fit = std::clamp(most.value / std::max(call.value, 1e-7), 2.0, 256.0);
  return static_cast<int>(std::clamp(std::ceil(wanted), 2.0, fit));
}

}  // namespace

Bench::Bench(Settings settings)
    : settings_(std::move(settings)),
      compute_capability_(cuda::sm()),
      l2_(cuda::l2_size()),
      most_clock_mhz_(cuda::attribute(cudaDevAttrClockRate) / 1e3) {
  wake(pool_, timer_.stream());
  try {
    if (settings_.counters) counters_ = std::make_unique<Counters>();
  } catch (const Error& e) {
    no_counters_ = reason(e);
  }
  try {
    if (settings_.kernel_times) trace_ = std::make_unique<KernelTrace>();
  } catch (const Error& e) {
    no_kernel_times_ = reason(e);
  }
}

void Bench::require_memory(const Point& p, const Prediction& predicted) const {
  if (const Bytes there = pool_.free(); predicted.memory > there)
    throw Error(name(p),
                "needs " + spelt(predicted.memory) + " (" + std::to_string(predicted.memory.value()) +
                    " bytes by the library's count), " + spelt(there) + " are free",
                "take a smaller size");
}

Result Bench::measure(const Point& p) {
  Result r;
  r.predicted = predict(p, compute_capability_, settings_.device ? &*settings_.device : nullptr);
  require_memory(p, r.predicted);
  const cudaStream_t stream = timer_.stream().get();
  const Prepared prepared = prepare(p, stream);
  r.walk = prepared.walk;
  if (!is_launch(p)) r.device_bytes = measured_memory(prepared, pool_, stream);

  // What does not fit so often is gone through in a shorter turn.
  const Bytes once = size_of(prepared.operands);
  std::int64_t sets = p.cache == Cache::cold ? rotating_sets(once, l2_) : 1;
  if (once > Bytes{}) {
    const std::int64_t room = (pool_.free() - prepared.workspace).value() / 10 * 9;
    sets = std::clamp<std::int64_t>(room / once.value(), 1, sets);
  }
  const OperandSets operands(prepared, sets, pool_, seed_ += 16, stream);
  timer_.stream().synchronize();

  // The turn goes on from the samples to the traces, so that each call finds what was used longest ago.
  std::int64_t turn = 0;
  const Timed timed{.call = [&](cudaStream_t s) { prepared.call(operands.of(turn++ % sets), operands.workspace(), s); },
                    .launches = prepared.launches};
  const auto read_state = [&] { r.state = nvml_.state(); };
  if (is_launch(p) && p.variant == "host")
    r.timing = timer_.measure_host(timed, settings_.rule);
  else
    // Launches in a stream are what a cold sample is made of.
    r.timing = timer_.measure(timed, is_launch(p) && p.variant == "stream" ? Cache::cold : p.cache, settings_.rule,
                              settings_.warm_up, throttled_below * most_clock_mhz_, read_state);
  if (r.timing.clock_mhz <= 0) r.timing.clock_mhz = r.state.sm_clock_mhz;
  r.throttled = r.state.throttled || (r.timing.clock_mhz > 0 && r.timing.clock_mhz < throttled_below * most_clock_mhz_);
  if (trace_) trace(timed, r);
  if (counters_ && !is_launch(p)) count(p, prepared, timed, r);
  return r;
}

void Bench::trace(const Timed& timed, Result& result) {
  const int calls = calls_within({0.02}, {result.timing.time.median}, 20);
  try {
    result.traced = trace_->trace(calls, [&] {
      for (int i = 0; i < calls; ++i) timed.call(timer_.stream().get());
      timer_.stream().synchronize();
    });
  } catch (const Error& e) {
    no_kernel_times_ = reason(e);
  }
}

/// In the steady state every call pushes as many written lines out of the cache as it leaves there itself, so calls on
/// other operands run first, and enough of them are counted for the edges not to matter: 40 times the cache.
void Bench::count(const Point& p, const Prepared& prepared, const Timed& timed, Result& result) {
  const double caches =
      static_cast<double>(l2_.value()) / std::max(1.0, static_cast<double>(size_of(prepared.operands).value()));
  const Seconds call{result.timing.time.median};
  const int before = calls_within({0.02}, call, 2 * caches);
  const int calls = calls_within({0.1}, call, 40 * caches);
  const auto run = [&](int n) {
    for (int i = 0; i < n; ++i) timed.call(timer_.stream().get());
    timer_.stream().synchronize();
  };
  try {
    run(before);
    result.counted = counters_->measure(cost(read_op(p, compute_capability_).op), calls, [&] { run(calls); });
    counted_ = true;
  } catch (const Error& e) {
    // What fails at the first point, for want of rights say, fails for every point: the benchmarks go on without.
    no_counters_ = reason(e);
    if (!counted_) counters_.reset();
  }
}

}  // namespace vlmest::bench
