// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bench/harness/measure.hpp>

namespace vlmest::bench {

/// What every result file says of the machine, the libraries and the settings, as Google Benchmark's context.
void add_context(const Bench& bench);

}  // namespace vlmest::bench
