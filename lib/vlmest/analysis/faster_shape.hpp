// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/device/device.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/unit/rate.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// Why a shape costs more than its arithmetic.
enum class Cliff : std::uint8_t { alignment, head_size, tail };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Cliff>{
    "rows that begin at no multiple of 16 bytes", "a head padded to the next tile", "a last wave of few tiles"};

/// A shape nearby that costs less than its share.
struct FasterShape {
  Cliff why = Cliff::alignment;
  std::string what;  ///< "k 3424 for 3420"
  Seconds saved{};   ///< of one execution
};

/// A shape near this one that would save more than a tenth of its time, or nothing.
std::optional<FasterShape> faster_shape(const Op& op, const Device& d);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/analysis/impl/faster_shape.hpp>
#endif
