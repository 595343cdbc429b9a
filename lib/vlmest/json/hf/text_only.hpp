// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <vlmest/nn/image_processor/text_only.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// A language model alone.
inline Vlm text_only(std::string_view type, Family family) {
  Vlm m{.type = std::string(type)};
  m.family = std::move(family);
  m.image_processor = image_processor::TextOnly{};
  return m;
}

}  // namespace vlmest::json::hf
