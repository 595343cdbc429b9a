// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/compare_run.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE Vlm as_counted(Vlm vlm, const MeasuredRun& run) {
  const std::optional<TokenRule> other = otherwise(vlm.tokens);
  const auto counted = run.figure("image_tokens");
  if (!other || !run.image.empty() || !counted) return vlm;
  const auto count = [&] { return static_cast<double>(make_sequences(vlm, run.plan).image_tokens); };
  if (count() == *counted) return vlm;
  const TokenRule own = std::exchange(vlm.tokens, *other);
  if (count() != *counted) vlm.tokens = own;
  return vlm;
}

}  // namespace vlmest
