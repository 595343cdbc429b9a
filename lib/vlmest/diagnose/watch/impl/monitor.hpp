// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/watch/monitor.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE MemoryReading reading_of(const MemoryRow& row) {
  const auto device = row.used || !row.free || !row.total || *row.free > *row.total ? row.used : *row.total - *row.free;
  return {.gpu = std::to_string(row.rank.value_or(0)),
          .step = row.step,
          .used = row.allocated        ? row.allocated
                  : row.peak_allocated ? std::nullopt
                                       : device,
          .peak = row.peak_allocated,
          .reserved = row.reserved ? row.reserved : row.peak_reserved,
          .total = row.total,
          .utilization = {}};
}

}  // namespace vlmest::diagnose
