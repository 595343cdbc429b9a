// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/report/live_tensor.hpp>

#include "table.hpp"

namespace vlmest::tool {

/// What makes a peak, tensors of equal layers in one line; the first `top` lines and the rest.
Table peak_table(const Graph& g, const std::vector<LiveTensor>& all, Bytes peak, std::size_t top);

/// "optimizer_state 26.3 GiB (40.0 %), weight 13.2 GiB (20.0 %)": what each role holds at a peak, the largest first.
std::string by_role(const Graph& g, const std::vector<LiveTensor>& all, Bytes peak);

}  // namespace vlmest::tool
