// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/image_processor.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE void read_image(const Reader& document, Vlm& vlm, FamilyRows rows) {
  if (!document.given("image")) return;
  const Reader r = document.object("image");
  if (!takes_images(vlm)) document.fail("image", "a model without a vision tower takes no images", "leave it out");
  DescriptionImage image(r);
  reader_of(rows, vlm.image_processor).image(image, vlm.image_processor);
  std::vector<std::string_view> keys{"native_size"};
  keys.insert(keys.end(), image.keys().begin(), image.keys().end());
  only_keys(r, keys);
  if (r.given("native_size")) {
    const auto [height, width] = pair_required(r, "native_size", image_processor::max_side);
    vlm.native = {height, width};
  }
  layout(vlm.image_processor, vlm.native);  // throws for parameters that the processor refuses
}

}  // namespace vlmest::json
