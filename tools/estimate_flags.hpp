// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/diagnose/inversion/run/settings.hpp>

namespace vlmest::tool {

/// The flags of `vlmest estimate` that estimate these settings, or nothing where no flags do: sharded or offloaded
/// states, a cache in pages.
std::optional<std::string> estimate_flags(const diagnose::Settings& s, diagnose::Mode mode);

}  // namespace vlmest::tool
