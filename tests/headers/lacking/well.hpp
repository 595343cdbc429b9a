// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "other.hpp"

namespace base {

struct Box;
const Box& same(const Box& b);

/// Through another header, by what the argument is of, and as a reference to what is not yet complete.
template <class T>
int any_area(const T& t) {
  return area(Other{}) + area(t) + t.width;
}

inline const Box& twice_the_same(const Box& b) { return same(same(b)); }

}  // namespace base
