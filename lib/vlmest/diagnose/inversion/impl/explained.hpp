// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/inversion/explained.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<double> memory_distance(const std::optional<PrintedSize>& allocated, Bytes before) {
  if (!allocated) return std::nullopt;
  if (allocated->low <= before && before <= allocated->high) return 0;
  const Bytes was = before < allocated->low ? allocated->low : allocated->high;
  const auto a = static_cast<double>(std::max<std::int64_t>(was.value(), 1));
  const auto b = static_cast<double>(std::max<std::int64_t>(before.value(), 1));
  return std::max(a, b) / std::min(a, b) - 1;
}

}  // namespace vlmest::diagnose
