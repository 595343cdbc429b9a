// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

/// Whether AddressSanitizer is compiled in: Clang, and GCC from 14 on, have a feature for it, older GCCs a macro.
#ifdef __has_feature
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif

/// Every how many of the inputs that a test asks the same of are asked: all of them, but under AddressSanitizer, which
/// takes five times as long and finds in one of `n` what it would find in the others.
constexpr std::size_t one_in(std::size_t n) { return under_address_sanitizer ? n : 1; }

/// Those of them.
template <class T>
std::vector<T> some_of(std::vector<T> all, std::size_t n) {
  std::vector<T> r;
  for (std::size_t i = 0; i < all.size(); i += one_in(n)) r.push_back(std::move(all[i]));
  return r;
}
