// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// Losses, norms and scales that tell of numbers gone wrong; the verdict where nothing else is one.
void add_numerics(Evidence& e, const diagnose::MemorySeries& series, std::string_view text);

}  // namespace vlmest::tool
