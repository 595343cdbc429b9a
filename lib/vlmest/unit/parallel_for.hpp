// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace vlmest {

/// As many threads as were asked for, or one for each processor where 0 are.
inline std::size_t thread_count(unsigned asked) {
  return asked > 0 ? asked : std::max(1u, std::thread::hardware_concurrency());
}

/// Calls work(state, i) for every i below n, on as many threads as there are states, each with one of its own. `done`
/// is told after each call how many there were; it is never called twice at a time. The first exception ends the work
/// and is thrown here.
template <class State, class Work, class Done>
void parallel_for(std::size_t n, std::span<State> states, Work&& work, Done&& done) {
  std::atomic<std::size_t> next{0};
  std::size_t finished = 0;
  std::mutex guard;
  std::exception_ptr failure;
  const auto run = [&](State& state) {
    try {
      for (std::size_t i = next++; i < n; i = next++) {
        work(state, i);
        const std::lock_guard lock(guard);
        done(++finished);
      }
    } catch (...) {
      next = n;
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < std::min(states.size(), n); ++t) try {
      others.emplace_back(run, std::ref(states[t]));
    } catch (...) {
      break;  // no more threads are to be had: the others do it all
    }
  run(states.front());
  for (auto& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vlmest
