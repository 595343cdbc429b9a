// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

#include <vlmest/unit/error.hpp>

namespace vlmest {

/// Wide enough for any product of two counts. Neither this nor the sums below use the compiler's overflow builtins:
/// nvcc does not take those in constant expressions.
__extension__ using Wide = __int128;

constexpr std::int64_t narrow(Wide w) {
  const auto n = static_cast<std::int64_t>(w);
  if (static_cast<Wide>(n) != w) throw Overflow{};
  return n;
}

/// a + b, a - b, a * b in signed 64-bit integers; throws Overflow instead of wrapping. A sum has wrapped where its sign
/// is that of neither operand (Warren, Hacker's Delight, 2-13).
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  const auto n = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  if (((a ^ n) & (b ^ n)) < 0) throw Overflow{};
  return n;
}
constexpr std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  const auto n = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  if (((a ^ b) & (a ^ n)) < 0) throw Overflow{};
  return n;
}
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) { return narrow(static_cast<Wide>(a) * b); }

/// A count of things of one kind. Counts of one kind add, subtract and scale by integers; two of them divide to a plain
/// ratio; different kinds do not mix. Overflow throws.
template <class Tag>
class Count {
 public:
  constexpr Count() = default;
  template <std::integral I>
  constexpr explicit Count(I n) : n_(static_cast<std::int64_t>(n)) {
    if constexpr (sizeof(I) >= 8 && !std::signed_integral<I>)
      if (n > static_cast<I>(INT64_MAX)) throw Overflow{};
  }

  constexpr std::int64_t value() const { return n_; }
  constexpr auto operator<=>(const Count&) const = default;

  constexpr Count& operator+=(Count o) {
    n_ = checked_add(n_, o.n_);
    return *this;
  }
  constexpr Count& operator-=(Count o) {
    n_ = checked_sub(n_, o.n_);
    return *this;
  }
  friend constexpr Count operator+(Count a, Count b) { return a += b; }
  friend constexpr Count operator-(Count a, Count b) { return a -= b; }
  template <std::integral I>
  friend constexpr Count operator*(Count a, I k) {
    return Count(checked_mul(a.n_, static_cast<std::int64_t>(k)));
  }
  template <std::integral I>
  friend constexpr Count operator*(I k, Count a) {
    return a * k;
  }
  /// How many times b goes into a: a plain number.
  friend constexpr double operator/(Count a, Count b) { return static_cast<double>(a.n_) / static_cast<double>(b.n_); }

 private:
  std::int64_t n_ = 0;
};

}  // namespace vlmest
