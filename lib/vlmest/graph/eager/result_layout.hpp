// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/graph/eager/emit.hpp>

/// Shape and layout of what an element-wise op makes of its operands (aten/src/ATen/TensorIterator.cpp).
namespace vlmest::eager {

/// Sizes after broadcasting a and b.
inline Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& big = a.rank() >= b.rank() ? a : b;
  const Shape& small = a.rank() >= b.rank() ? b : a;
  Shape r = big;
  for (int i = 1; i <= small.rank(); ++i) {
    const auto x = big[-i], y = small[-i];
    if (x != y && x != 1 && y != 1) throw Error("graph", "cannot broadcast " + to_string(a) + " with " + to_string(b));
    r[big.rank() - i] = x == 1 ? y : x;
  }
  return r;
}

/// Strides of a result of shape s whose operands are all broadcast: dimensions are sorted by the strides of the first
/// operand that has both; those that no operand has both of stay in their order (TensorIterator.cpp,
/// reorder_dimensions).
template <class... In>
Shape broadcast_strides(const Shape& s, const In&... in) {
  const auto stride = [&](const Value& v, int d) -> std::int64_t {
    const int own = d - (s.rank() - v.shape().rank());
    return own < 0 || (v.size(own) == 1 && s[d] != 1) ? 0 : v.tensor().strides[own];
  };
  return sorted_strides(s, [&](int x, int y) {
    int r = 0;
    const auto look = [&](const Value& v) {
      if (r != 0) return;
      const std::int64_t a = stride(v, x), b = stride(v, y);
      if (a == 0 || b == 0) return;
      r = a != b ? (a > b ? 1 : -1) : s[x] > s[y] ? 1 : 0;
    };
    (look(in), ...);
    return r;
  });
}

/// The operand whose layout the result follows: the first one of full size.
template <class... In>
Shape result_strides(const Shape& s, const In&... in) {
  Shape r = s;
  bool found = false;
  auto look = [&](const Value& v) {
    if (!found && v.shape() == s) {
      found = true;
      r = strides_like(v.tensor(), s);
    }
  };
  (look(in), ...);
  return found ? r : broadcast_strides(s, in...);
}

}  // namespace vlmest::eager
