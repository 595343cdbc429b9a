// SPDX-License-Identifier: Apache-2.0
#include "args.hpp"

namespace vlmest::tool {
namespace {

[[noreturn]] void refuse(const char* flag, const std::string& what, const Vlm& vlm) {
  throw Error(flag, vlm.type + " is a plain language model: " + what, std::string("leave ") + flag + " out");
}

}  // namespace

Plan EstimateArgs::for_model(Plan asked, const Vlm& vlm) const {
  if (takes_images(vlm)) return asked;
  if (images && *images > 0) refuse("--images", "it takes no images", vlm);
  if (!image_size.empty()) refuse("--image-size", "it takes no images", vlm);
  if (asked.vision_chunk > 0) refuse("--vision-chunk", "it has no vision tower", vlm);
  for (const auto& part : freeze)
    if (part != "language") refuse("--freeze", "it has no " + part, vlm);
  if (asked.lora.vision) refuse("--lora-vision", "it has no vision tower", vlm);
  if (!asked.checkpointed.language) refuse("--checkpointing", "it has no vision tower", vlm);
  asked.images = 0;
  return asked;
}

}  // namespace vlmest::tool
