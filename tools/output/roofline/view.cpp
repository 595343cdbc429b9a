// SPDX-License-Identifier: Apache-2.0
#include "view.hpp"

#include <cmath>
#include <string_view>

namespace vlmest::tool {
namespace {

/// The name in op lists of an ATen op: "add" of "add_.Tensor", "copy" of "_to_copy" and "clone".
std::string_view listed_name(std::string_view aten) {
  aten = aten.substr(0, aten.find('.'));
  while (aten.starts_with('_')) aten.remove_prefix(1);
  while (aten.ends_with('_')) aten.remove_suffix(1);
  return aten == "to_copy" || aten == "clone" ? "copy" : aten;
}

}  // namespace

void add_measurement(RooflineView& view, const MeasuredOp& m) {
  if (!m.time_us || *m.time_us <= 0) return;
  const std::string_view benchmark = m.name, kind = benchmark.substr(0, benchmark.find('/'));
  bool found = false;
  for (std::size_t i = 0; i < view.points.points.size(); ++i) {
    const RooflinePoint& p = view.points.points[i];
    if (!same_op(p.op, m.op) || (std::holds_alternative<MemoryOp>(p.op) && listed_name(p.name) != kind)) continue;
    const bool counted = m.dram_bytes && *m.dram_bytes > 0;
    view.measured.push_back({.name = m.name,
                             .time = {*m.time_us * 1e-6},
                             .moved = counted ? Bytes(std::llround(*m.dram_bytes)) : p.moved(),
                             .counted = counted,
                             .point = i});
    found = true;
  }
  if (!found) ++view.measured_elsewhere;
}

}  // namespace vlmest::tool
