// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/diagnose/advise/action/id.hpp>

namespace vlmest::diagnose {

/// In kebab case and stable: `actions[].id` of `vlmest diagnose`.
std::string_view name(ActionId a);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/action_id.hpp>
#endif
