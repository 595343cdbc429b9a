// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/report/compare_run.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE Vlm as_counted(Vlm vlm, const MeasuredRun& run) {
  const std::optional<ImageProcessor> other = otherwise(vlm.image_processor);
  const auto counted = run.figure("image_tokens");
  if (!other || !run.image.empty() || !counted) return vlm;
  const auto count = [&] { return static_cast<double>(make_sequences(vlm, run.plan).image_tokens); };
  if (count() == *counted) return vlm;
  const ImageProcessor own = std::exchange(vlm.image_processor, *other);
  if (count() != *counted) vlm.image_processor = own;
  return vlm;
}

}  // namespace vlmest
