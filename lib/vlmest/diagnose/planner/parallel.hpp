// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace vlmest::diagnose {

/// Calls work(state, i) for every i below n, on that many threads (0: one for each processor), each with a state of its
/// own that make() gives. `done` is told after each call how many there were; it is never called twice at a time. The
/// first exception ends the work and is thrown here.
template <class Make, class Work, class Done>
void parallel_for(std::size_t n, unsigned threads, Make&& make, Work&& work, Done&& done) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<std::size_t>(threads, n));
  std::atomic<std::size_t> next{0};
  std::size_t finished = 0;
  std::mutex guard;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      auto state = make();
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
  for (unsigned t = 1; t < threads; ++t) try {
      others.emplace_back(run);
    } catch (...) {
      break;  // no more threads are to be had: the others do it all
    }
  run();
  for (auto& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vlmest::diagnose
