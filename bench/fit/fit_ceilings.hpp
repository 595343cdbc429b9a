// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <vlmest/report/measured_op.hpp>

namespace vlmest::fit {

/// Products below this side say less of the arithmetic than of their launch.
inline constexpr std::int64_t ceiling_side = 4096;

/// The ceilings that measured operations show: the fastest copy of at least four times the L2 cache, the fastest large
/// bf16 product, and of copies that stay in half of the L2 cache the bytes and time by which the largest exceeds the
/// smallest, so that their launch does not count. What no operation shows is left empty.
inline MeasuredCeilings ceilings(const std::vector<MeasuredOp>& measured, const Device& d) {
  MeasuredCeilings r;
  using Copy = std::pair<Bytes, Seconds>;
  std::optional<Copy> smallest, largest;
  for (const MeasuredOp& m : measured) {
    if (!m.time_us || *m.time_us <= 0) continue;
    const Seconds time{*m.time_us * 1e-6};
    if (const auto* p = std::get_if<Matmul>(&m.op); p && p->dtype == DType::bf16) {
      if (std::min({p->m, p->n, p->k}) < ceiling_side) continue;
      const FlopRate rate{static_cast<double>(cost(*p).flops.value()) / time.value};
      if (!r.bf16 || rate > *r.bf16) r.bf16 = rate;
    }
    const auto* c = std::get_if<MemoryOp>(&m.op);
    if (!c || c->access != Access::fused || c->read != c->written) continue;
    const Bytes moved = c->read + c->written;
    if (m.cold && moved >= d.l2 * 4) {
      const Bandwidth rate{static_cast<double>(moved.value()) / time.value};
      if (!r.dram_copy || rate > *r.dram_copy) r.dram_copy = rate;
    }
    if (m.cold || moved < Bytes(4 << 20) || moved * 2 > d.l2) continue;
    if (!smallest || moved < smallest->first) smallest = Copy{moved, time};
    if (!largest || moved > largest->first) largest = Copy{moved, time};
  }
  if (smallest && largest->first >= smallest->first * 2 && largest->second > smallest->second)
    r.l2 = Bandwidth{static_cast<double>((largest->first - smallest->first).value()) /
                     (largest->second.value - smallest->second.value)};
  return r;
}

}  // namespace vlmest::fit
