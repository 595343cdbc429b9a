// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/registry.hpp>
#include <vlmest/json/families.hpp>
#include <vlmest/nn/image_processor/impl/processor.hpp>
#include <vlmest/nn/impl/family.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE FamilyRows families() { return family::registry; }

}  // namespace vlmest::json
