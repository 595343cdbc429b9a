// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/video.hpp>
#include <vlmest/unit/owned.hpp>

namespace vlmest {

/// The functions of a rule that takes videos, or nothing.
template <ImageRule R>
constexpr auto video_function() -> ImageLayout (*)(const void*, const VideoSource&) {
  if constexpr (VideoRule<R>)
    return
        [](const void* r, const VideoSource& v) -> ImageLayout { return video_layout(*static_cast<const R*>(r), v); };
  else
    return nullptr;
}
template <ImageRule R>
constexpr auto own_sampling_function() -> OwnSampling (*)(const void*) {
  if constexpr (VideoRule<R>)
    return [](const void* r) -> OwnSampling { return own_sampling(*static_cast<const R*>(r)); };
  else
    return nullptr;
}

template <ImageRule R>
const RuleFunctions& rule_functions() {
  static constexpr RuleFunctions table{
      .copy = [](const void* r) -> std::shared_ptr<void> { return owned(new R(*static_cast<const R*>(r))); },
      .layout = [](const void* r, ImageSize size) -> ImageLayout { return layout(*static_cast<const R*>(r), size); },
      .layouts = [](const void* rule, std::span<const ImageSize> sizes) -> std::vector<ImageLayout> {
        const R& r = *static_cast<const R*>(rule);
        if constexpr (requires { layouts(r, sizes); }) {
          return layouts(r, sizes);
        } else {
          std::vector<ImageLayout> all;
          all.reserve(sizes.size());
          for (const ImageSize s : sizes) all.push_back(layout(r, s));
          return all;
        }
      },
      .lower = [](const void* r, const ImageLayout& l) -> std::vector<ImageProcessor> {
        std::vector<ImageProcessor> all;
        for (R& less : lower(*static_cast<const R*>(r), l)) all.emplace_back(std::move(less));
        return all;
      },
      .limit_line = [](const void* r) -> std::string { return limit_line(*static_cast<const R*>(r)); },
      .otherwise = [](const void* rule) -> std::optional<ImageProcessor> {
        const R& r = *static_cast<const R*>(rule);
        if constexpr (requires { otherwise(r); })
          return otherwise(r);
        else
          return std::nullopt;
      },
      .video = video_function<R>(),
      .own_sampling = own_sampling_function<R>(),
      .budget = [](void* r) -> image_processor::PixelBudget* {
        if constexpr (requires(R & rule) { rule.budget; })
          return &static_cast<R*>(r)->budget;
        else
          return nullptr;
      },
      .features = [](void* r) -> Grid* {
        if constexpr (requires(R & rule) { rule.features; })
          return &static_cast<R*>(r)->features;
        else
          return nullptr;
      },
  };
  return table;
}

}  // namespace vlmest
