// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vlmest::diagnose {

/// An action, by its place in the catalogue, which alone has the names: action_id("kv-fp8") in catalogue.hpp, and back
/// name() in action_id.hpp.
enum class ActionId : std::uint8_t {};

}  // namespace vlmest::diagnose
