// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/compare_run.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE Vlm as_counted(Vlm vlm, const MeasuredRun& run) {
  auto* const rule = std::get_if<tokens::Idefics3>(&vlm.tokens);
  const auto counted = run.figure("image_tokens");
  if (rule == nullptr || !run.image.empty() || !counted) return vlm;
  const auto count = [&] { return static_cast<double>(make_sequences(vlm, run.plan).image_tokens); };
  const tokens::Tiling own = rule->tiling;
  if (count() == *counted) return vlm;
  rule->tiling = tokens::Tiling::never;
  if (count() != *counted) rule->tiling = own;
  return vlm;
}

}  // namespace vlmest
