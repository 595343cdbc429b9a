// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vlmest {

/// A member without a default: an aggregate that leaves it out does not compile.
template <class T>
class Required {
 public:
  constexpr Required(T value) : value_(value) {}
  constexpr operator const T&() const { return value_; }

 private:
  T value_;
};

}  // namespace vlmest
