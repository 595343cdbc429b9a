// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/unit/units.hpp>

namespace vlmest::diagnose {

/// A size as a text gives it: "6.10 GiB" is any number of bytes from 6.095 to 6.105 GiB. A size in plain bytes is
/// exact: the three are equal.
struct PrintedSize {
  Bytes value;      ///< what the digits say
  Bytes low, high;  ///< every real size that prints so lies in [low, high]

  static constexpr PrintedSize exactly(Bytes b) { return {b, b, b}; }
  constexpr bool exact() const { return low == high; }
  constexpr bool holds(Bytes b) const { return low <= b && b <= high; }
  bool operator==(const PrintedSize&) const = default;
};

}  // namespace vlmest::diagnose
