// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <vlmest/unit/rate.hpp>

namespace vlmest {

/// What runs side by side in a process: the host's thread, the kernels that it launches, the collectives of several
/// GPUs, and copies over the host's link in either direction.
enum class Stream : std::uint8_t { host, compute, communication, to_host, from_host };

/// When each stream ends, from a moment when all are idle. Each runs what it is given in turn, and waits for another
/// only where it is told to.
class Streams {
 public:
  constexpr Seconds end(Stream s) const { return ends_[index(s)]; }

  constexpr void run(Stream s, Seconds t) { ends_[index(s)] += t; }

  /// Kernels that take `all`, which the host has launched one by one up to its present end: the last of them, which
  /// takes `last`, runs behind the others, and not before it is launched. Whether it waited for its launch.
  constexpr bool run_launched(Stream s, Seconds all, Seconds last) {
    Seconds& end = ends_[index(s)];
    const Seconds in_turn = end + all, launched = ends_[index(Stream::host)] + last;
    end = std::max(in_turn, launched);
    return launched > in_turn;
  }

  /// What `s` is given from now on begins when `other` has ended.
  constexpr void wait(Stream s, Stream other) { ends_[index(s)] = std::max(end(s), end(other)); }

  /// All wait for all.
  constexpr void join() { ends_.fill(wall()); }

  constexpr Seconds wall() const { return *std::max_element(ends_.begin(), ends_.end()); }

  /// As if all since `before` had run n times.
  constexpr void repeat(const Streams& before, std::int64_t n) {
    for (std::size_t i = 0; i < ends_.size(); ++i)
      ends_[i] += Seconds{ends_[i].value - before.ends_[i].value} * static_cast<double>(n - 1);
  }

 private:
  static constexpr std::size_t index(Stream s) { return static_cast<std::size_t>(s); }

  std::array<Seconds, 5> ends_{};
};

}  // namespace vlmest
