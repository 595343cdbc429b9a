// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/advise/action/vision_chunk_line.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
VLMEST_INLINE std::int64_t vision_rows(const Vlm& vlm, const Plan& plan) {
  const Sequences s = make_sequences(vlm, plan);
  const FeatureCall call = vlm.family.traits().features;
  if (!call.line) return 0;
  if (!call.tiles) return static_cast<std::int64_t>(s.images.size());
  std::int64_t tiles = 0;
  for (const ImageLayout& i : s.images) tiles = checked_add(tiles, i.tiles);
  return tiles;
}

VLMEST_INLINE std::vector<Settings> vision_chunks(const Subject& s) {
  std::vector<Settings> r;
  const std::int64_t rows = vision_rows(s.now.vlm, s.plan());
  std::int64_t last = s.plan().vision_chunk > 0 ? std::min(rows, s.plan().vision_chunk) : rows;
  for (std::int64_t calls = 2; last > 1; calls = calls < lever_steps ? calls + 1 : calls * 2) {
    const std::int64_t n = (rows + calls - 1) / calls;
    if (n >= last) continue;
    last = n;
    r.emplace_back(s.now).plan.vision_chunk = n;
  }
  return r;
}

}  // namespace vlmest::diagnose
