// SPDX-License-Identifier: Apache-2.0
// rejected with: ReadableRule
#include <vlmest/json/family_row.hpp>

struct Square {};
vlmest::ImageLayout layout(const Square&, vlmest::ImageSize);
std::vector<Square> lower(const Square&, const vlmest::ImageLayout&);
std::string limit_line(const Square&);

void read_image(vlmest::json::DescriptionImage&, Square&);
void read_image_keys(vlmest::json::ProcessorKeys&, Square&);
#ifndef REJECT
void read_outer_keys(vlmest::json::ProcessorKeys&, Square&);
#endif

const std::size_t rules = vlmest::json::Rules<Square>::readers.size();
