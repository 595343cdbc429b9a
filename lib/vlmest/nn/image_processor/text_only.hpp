// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::image_processor {

/// A model without a vision tower, of text alone or of sound and text: there is no picture that it takes.
struct TextOnly {};

[[noreturn]] inline ImageLayout layout(const TextOnly&, ImageSize) {
  throw Error("plan.images", "a model without a vision tower takes no images", "give 0, or a vision-language model");
}

inline std::vector<TextOnly> lower(const TextOnly&, const ImageLayout&) { return {}; }
inline std::string limit_line(const TextOnly&) { return {}; }

}  // namespace vlmest::image_processor
