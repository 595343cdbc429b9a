// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/families.hpp>
#include <vlmest/nn/vlm.hpp>

/// "image" of a description: what a checkpoint's image processor is set to, which its config.json does not say.
namespace vlmest::json {

/// Sets the fields that the rule's family lets a description set, and no others; "native_size" is the size that is
/// meant where none is given. Throws Error for any other key.
void read_image(const Reader& document, Vlm& vlm, FamilyRows rows = families());

/// The same, of the text of an "image" alone, as measured rows carry it; nothing where it is empty.
inline void set_image(const std::string& image, const std::string& where, Vlm& vlm) {
  if (image.empty()) return;
  const nlohmann::json document = {{"image", nlohmann::json::parse(image)}};
  read_image(Reader(document, where), vlm);
}

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/image_processor.hpp>
#endif
