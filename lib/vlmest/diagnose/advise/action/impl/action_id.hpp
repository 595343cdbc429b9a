// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/action_id.hpp>
#include <vlmest/diagnose/advise/action/catalogue.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::string_view name(ActionId a) { return catalogue::names[static_cast<std::size_t>(a)]; }

}  // namespace vlmest::diagnose
