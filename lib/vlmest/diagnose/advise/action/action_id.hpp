// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vlmest::diagnose {

/// An action, by its place in the catalogue, which alone has the names: action_id("kv-fp8") in catalogue.hpp.
enum class ActionId : std::uint8_t {};

/// In kebab case and stable: `actions[].id` of `vlmest diagnose`.
std::string_view name(ActionId a);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/action_id.hpp>
#endif
