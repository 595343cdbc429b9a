// SPDX-License-Identifier: Apache-2.0
// rejected with: Required<
#include <vlmest/nn/family.hpp>

using namespace vlmest;

constexpr FamilyTraits traits{
#ifndef REJECT
    .features = feature_calls::tensor,
#endif
    .plain_head = false,
};
