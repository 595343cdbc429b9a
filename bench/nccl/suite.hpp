// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_options.hpp"

namespace vlmest::bench::nccl {

/// `vlmest bench --suite nccl`: collectives over all devices that this process sees, each a Google Benchmark of manual
/// time with its bytes, ranks and bus bandwidth; `report` runs what is registered. Throws Error on fewer than two
/// devices, where NCCL is missing, and for words and filters that are not known.
int run(const tool::BenchOptions& o, const std::function<void()>& report);

}  // namespace vlmest::bench::nccl
