// SPDX-License-Identifier: Apache-2.0
// rejected with: Required<
#include <vlmest/json/family_row.hpp>

using namespace vlmest;

Vlm read(const json::Reader&);

const json::ModelType type{
    .type = "square",
    .read = read,
#ifndef REJECT
    .recorder = json::not_recorded,
#endif
    .text_part = {},
};
