// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <bench/harness/timer.hpp>
#include <kernels/cuda/graph.hpp>

namespace vlmest::bench {
namespace {

/// Launches that may wait in a stream behind the blocker: far from the thousand where the next one blocks the host.
constexpr int most_waiting = 256;

class Clock {
 public:
  Seconds passed() const { return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()}; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Timer::Timer() {
  sample([] {});
  stream_.synchronize();
}

void Timer::sample(const std::function<void()>& work) {
  blocker_.block(stream_.get());
  try {
    clock_.begin(stream_.get());
    from_.record(stream_.get());
    work();
    to_.record(stream_.get());
    clock_.end(stream_.get());
  } catch (...) {
    blocker_.release();
    throw;
  }
  blocker_.release();
}

/// A first call loads kernels; then a few behind the blocker, unless one is so long that a launch does not count.
Seconds Timer::first_guess(const Timed& timed) {
  timed.call(stream_.get());
  stream_.synchronize();
  from_.record(stream_.get());
  timed.call(stream_.get());
  to_.record(stream_.get());
  stream_.synchronize();
  const Seconds once = cuda::elapsed(from_, to_);
  if (once >= shortest_sample) return once;
  constexpr int few = 4;
  sample([&] {
    for (int i = 0; i < few; ++i) timed.call(stream_.get());
  });
  stream_.synchronize();
  return cuda::elapsed(from_, to_) * (1.0 / few);
}

/// A point before this one may have drawn so much power that the clock is still down: small kernels after it took up to
/// a third longer on an H200, for some tens of milliseconds. The call itself is what runs until the clock is its own,
/// so that one which holds the clock down by its own power is measured with the clock that it brings about.
void Timer::settle(const std::function<void()>& work, double low_clock_mhz) {
  constexpr Seconds turn{0.02}, most{0.2};
  const Clock since;
  double before = 0;
  for (Seconds next{}; since.passed() < most;) {
    sample(work);
    stream_.synchronize();
    const double mhz = clock_.mhz();
    if (blocker_.timed_out() || mhz <= 0 || mhz >= low_clock_mhz) return;
    if (since.passed() < next) continue;
    if (mhz < 1.01 * before) return;
    before = mhz;
    next = since.passed() + turn;
  }
}

Timing Timer::measure(const Timed& timed, Cache cache, const StopRule& rule, Seconds warm_up, double low_clock_mhz,
                      const std::function<void()>& during) {
  const Seconds guess = std::max(first_guess(timed), Seconds{1e-7});
  Timing r;
  r.calls = calls_per_sample(guess, std::max(1, most_waiting / std::max(1, timed.launches)));
  const std::function<void()> calls = [&] {
    for (int i = 0; i < r.calls; ++i) timed.call(stream_.get());
  };
  std::function<void()> work = calls;
  std::optional<cuda::Graph> graph;
  if (cache == Cache::hot) {
    graph.emplace(stream_.get(), calls);
    work = [&] { graph->launch(stream_.get()); };
  }
  for (Seconds done{}; done < warm_up; done += guess * r.calls) work();
  work();  // a graph's first launch uploads it; the cache gets its usual contents
  stream_.synchronize();
  settle(work, low_clock_mhz);

  std::vector<double> times, clocks;
  Seconds spent{};
  for (int late = 0; !enough(times, spent, rule);) {
    sample(work);
    if (static_cast<int>(times.size()) + 1 == rule.least) during();
    stream_.synchronize();
    const Seconds whole = cuda::elapsed(from_, to_);
    if (blocker_.timed_out()) {
      if (++late < 3) continue;
      throw Error("timer",
                  "the host takes longer than the blocking kernel waits for " + std::to_string(r.calls) + " calls",
                  "the call synchronises, or other programs keep the host busy");
    }
    spent += whole;
    times.push_back(whole.value / r.calls);
    if (const double mhz = clock_.mhz(); mhz > 0) clocks.push_back(mhz);
  }
  r.time = statistics(times);
  r.samples = static_cast<int>(times.size());
  r.clock_mhz = statistics(clocks).median;
  return r;
}

Timing Timer::measure_host(const Timed& timed, const StopRule& rule) {
  Timing r;
  r.calls = most_waiting;
  const auto launch = [&] {
    for (int i = 0; i < r.calls; ++i) timed.call(stream_.get());
  };
  launch();
  stream_.synchronize();
  std::vector<double> times;
  for (Seconds spent{}; !enough(times, spent, rule);) {
    const Clock clock;
    launch();
    const Seconds whole = clock.passed();
    stream_.synchronize();
    spent += whole;
    times.push_back(whole.value / r.calls);
  }
  r.time = statistics(times);
  r.samples = static_cast<int>(times.size());
  return r;
}

}  // namespace vlmest::bench
