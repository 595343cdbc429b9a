// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/device/device.hpp>

namespace vlmest::fuzz {

/// What the targets estimate for.
inline const Device device{.name = "fuzz",
                           .sm = 90,
                           .multiprocessors = 132,
                           .memory_bytes = Bytes(std::int64_t{80} << 30),
                           .usable_bytes = Bytes(std::int64_t{79} << 30),
                           .dram = {3e12},
                           .l2 = Bytes(50 << 20),
                           .host_link = {5e10},
                           .peaks = {{6e13}, {4e14}, {8e14}, {8e14}, {16e14}, {16e14}},
                           .launch = {5e-6},
                           .kernel_floor = {1e-6}};

}  // namespace vlmest::fuzz
