// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// The nearest size with sides divisible by `factor` and a pixel count inside the budget, of `frames` pictures of one
/// size together; `counted` of them are held against the budget, and all scaled by. Both are 1 for pictures of the Qwen
/// line; GLM-4V counts the copies of a still picture that fill its temporal patch; of a video it counts the frames
/// rounded to whole temporal patches.
/// transformers 5.17 image_processing_qwen2_vl.py, image_processing_glm4v.py and video_processing_qwen3_vl.py,
/// smart_resize. Throws Error when one side is more than 200 times the other. Where the limits cross, the upper one is
/// looked at first.
inline ImageSize resize_between(ImageSize image, std::int64_t factor, PixelBudget budget, std::int64_t frames = 1,
                                std::int64_t counted = 1) {
  check("patch_size * merge_size", factor);
  const auto longer = std::max(image.height, image.width), shorter = std::min(image.height, image.width);
  if (shorter < 1 || longer > 200 * shorter)
    throw Error("image size",
                std::to_string(image.height) + "x" + std::to_string(image.width) +
                    " has an aspect ratio above 200, which the processor refuses",
                "crop or pad the picture");

  const auto f = static_cast<double>(factor);
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const auto pixels = static_cast<double>(frames * image.height * image.width);
  ImageSize r{round_div(image.height, factor) * factor, round_div(image.width, factor) * factor};
  if (counted * r.height * r.width > budget.max_pixels) {
    const double beta = std::sqrt(pixels / static_cast<double>(budget.max_pixels));
    r.height = std::max(factor, to_int(std::floor(h / beta / f)) * factor);
    r.width = std::max(factor, to_int(std::floor(w / beta / f)) * factor);
  } else if (counted * r.height * r.width < budget.min_pixels) {
    const double beta = std::sqrt(static_cast<double>(budget.min_pixels) / pixels);
    r.height = to_int(std::ceil(h * beta / f)) * factor;
    r.width = to_int(std::ceil(w * beta / f)) * factor;
  }
  if (r.height == 0 || r.width == 0)
    throw Error("image size", std::to_string(image.height) + "x" + std::to_string(image.width) + " rounds to no patch",
                "use a picture of at least " + std::to_string(factor) + " pixels a side");
  return r;
}

/// The same of limits in order, or Error.
inline ImageSize smart_resize(ImageSize image, std::int64_t factor, PixelBudget budget, std::int64_t frames,
                              std::int64_t counted) {
  constexpr std::int64_t most = max_side * max_side;
  check("min_pixels", budget.min_pixels, 1, most);
  check("max_pixels", budget.max_pixels, budget.min_pixels, most);
  return resize_between(image, factor, budget, frames, counted);
}
inline ImageSize smart_resize(ImageSize image, std::int64_t factor, PixelBudget budget, std::int64_t frames = 1) {
  return smart_resize(image, factor, budget, frames, frames);
}

/// A picture with a side below `factor` is enlarged first; int() may lose a pixel, as in Python (smart_resize of
/// GLM-4V and of Qwen3-VL's videos).
inline ImageSize at_least(ImageSize image, std::int64_t factor) {
  if (image.height >= factor && image.width >= factor) return image;
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const double scale = std::max(static_cast<double>(factor) / h, static_cast<double>(factor) / w);
  return {to_int(h * scale), to_int(w * scale)};
}

/// One sequence of patches at that size, merged by squares before the language model. The processors of these families
/// write nothing else: the tokens before and after a picture (<|vision_start|>, <|begin_of_image|>) are the prompt's.
constexpr ImageLayout merged_patches(ImageSize resized, std::int64_t patch_size, std::int64_t merge) {
  ImageLayout l;
  l.resized = resized;
  l.patches = {resized.height / patch_size, resized.width / patch_size};
  l.tower_tokens = l.patches.count();
  l.llm_tokens = merged(l.patches, merge).count();
  return l;
}

}  // namespace vlmest::image_processor
