// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/numerics.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// Losses, norms and scales that tell of numbers gone wrong, by a log's rows and by its messages; the verdict where
/// nothing else is one.
void add_numerics(Evidence& e, const diagnose::MemorySeries& series,
                  const std::vector<diagnose::NumericFinding>& messages);

}  // namespace vlmest::tool
