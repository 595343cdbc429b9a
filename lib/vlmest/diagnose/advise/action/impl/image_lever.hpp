// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/advise/action/image_lever.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::vector<Settings> lower_images(const Settings& now) {
  std::vector<Settings> r;
  if (now.plan.images < 1) return r;
  const std::vector<ImageSize> sizes = image_sizes(now.vlm, now.plan);
  const auto of = [](const ImageProcessor& rule, ImageSize size) {
    const ImageLayout l = layout(rule, size);
    return l.tiles * l.tower_tokens + l.llm_tokens;
  };
  const auto tokens = [&](const ImageProcessor& rule) {
    std::int64_t n = 0;
    for (const ImageSize s : sizes) n = checked_add(n, of(rule, s));
    return n;
  };
  const ImageSize largest = *std::max_element(sizes.begin(), sizes.end(), [&](ImageSize a, ImageSize b) {
    return of(now.vlm.image_processor, a) < of(now.vlm.image_processor, b);
  });
  const std::vector<ImageProcessor> rules = lower(now.vlm.image_processor, layout(now.vlm.image_processor, largest));
  std::int64_t least = tokens(now.vlm.image_processor);
  for (const ImageProcessor& rule : rules) {
    const std::int64_t n = tokens(rule);
    if (n >= least) continue;
    least = n;
    Settings s = now;
    s.vlm.image_processor = rule;
    keep_text(now, s);
    r.push_back(std::move(s));
  }
  return r;
}

}  // namespace vlmest::diagnose
