// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "primary.hpp"

/// What the headers beside this one use.
namespace base {

struct Box {
  int width = 0;
};

enum Side { left, right };

using Length = int;

#define BASE_TWICE(x) (2 * (x))

template <class T>
concept HasWidth = requires(T t) {
  t.width;
};

inline int area(const Box& b) { return b.width * b.width; }

inline int operator+(const Box& a, const Box& b) { return a.width + b.width; }

template <>
inline constexpr int words_of<Box> = 1;

}  // namespace base
