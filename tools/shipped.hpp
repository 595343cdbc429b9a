// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace vlmest::tool {

/// The folder of the shipped model and device descriptions: $VLMEST_MODELS where set, else beside an installed program
/// (../share/vlmest/models), else in the sources this program was built from.
std::filesystem::path shipped_models();

/// "0.1.0"
std::string_view version();

}  // namespace vlmest::tool
