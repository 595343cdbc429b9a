// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/analysis/memory_time.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/op/op.hpp>

namespace vlmest {

/// How long an op takes on a device, from what was measured there of its kind of kernel, and what limits it. Products
/// and attention are taken with their operands in DRAM: those of a model are weights and long caches.
OpTime op_time(const Op& op, const Device& d, Operands operands = Operands::from_cache);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/analysis/impl/op_time.hpp>
#endif
