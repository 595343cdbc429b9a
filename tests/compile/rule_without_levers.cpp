// SPDX-License-Identifier: Apache-2.0
// rejected with: conver(sion|t)
#include <vlmest/nn/image_processor/processor.hpp>

struct Square {};
vlmest::ImageLayout layout(const Square&, vlmest::ImageSize);
#ifndef REJECT
std::vector<Square> lower(const Square&, const vlmest::ImageLayout&);
#endif
std::string limit_line(const Square&);

vlmest::ImageProcessor rule() {
  vlmest::ImageProcessor r = Square{};
  return r;
}
