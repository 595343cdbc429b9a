// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/gemma_text.hpp>
#include <vlmest/json/hf/vision.hpp>

namespace vlmest::json::hf {

/// The vision_config of a family that is built on SigLIP.
inline SiglipVision read_siglip_only(const Reader& v) {
  const std::string type = v.string("model_type", "siglip_vision_model");
  if (type != "siglip_vision_model")
    v.fail("model_type", "'" + type + "' is not supported here", "known: siglip_vision_model");
  return std::get<SiglipVision>(read_siglip(v));
}

/// Whether the placeholder of images (image_token_id, formerly image_token_index) lies outside the vocabulary.
inline bool read_placeholder_outside(const Reader& r, std::int64_t absent, std::int64_t vocab) {
  return r.integer(r.given("image_token_id") ? "image_token_id" : "image_token_index", absent, 0) >= vocab;
}

}  // namespace vlmest::json::hf
