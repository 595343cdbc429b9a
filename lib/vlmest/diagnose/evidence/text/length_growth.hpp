// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// Memory that somebody measured at lengths that double: 4096, 8192 and 16384 tokens with a figure for each.
namespace vlmest::diagnose {

struct MeasuredLength {
  std::int64_t length = 0;
  Bytes memory;
  std::int64_t line = 0;  ///< of the memory
};

struct LengthGrowth {
  std::vector<MeasuredLength> at;  ///< three or more, each length twice the one before
  /// What one more doubling adds over what the one before it added, the least of them: 2 where memory has a part that
  /// grows with the length and one that does not, 4 where it grows with its square.
  double ratio = 0;
};

/// The figures of a text with few rows of memory, each with the last length that stands between it and the row before
/// it: a whole number of 512 or more that is one of 512 times a power of two.
std::optional<LengthGrowth> find_length_growth(std::string_view text, const std::vector<MemoryRow>& rows);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/length_growth.hpp>
#endif
