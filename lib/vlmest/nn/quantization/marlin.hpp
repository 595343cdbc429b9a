// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/library/gpu.hpp>
#include <vlmest/nn/quantization/stored.hpp>

/// Marlin, the kernel that gptqmodel and serving engines run 4- and 8-bit integer weights with
/// (gptqmodel_ext/marlin/gptq_marlin.cu; ArchitectureRule::marlin says where). gptqmodel prefers Machete on Hopper
/// where it could be compiled; that keeps the same bytes but for AWQ's zero points, 16 bits each there.
namespace vlmest {

/// utils/marlin.py, marlin_make_workspace_new: locks of each module.
inline void marlin_workspace(Context& c, TensorId weight) {
  beside(c, weight, "workspace", {std::max(c.b.gpu.multiprocessors, 128)}, DType::int32);
}

/// The fp32 partial sums of every multiprocessor, and x in the order of the groups where that differs: both are held
/// while the kernel runs.
inline Value marlin_matmul(Context& c, const char* name, Value x, const Value& weight, const QuantizedWeight& q,
                           Value bias, bool reordered) {
  constexpr std::int64_t most_rows = 64, widest = 256;
  const std::int64_t rows = numel(x.shape()).value() / q.in;
  const std::int64_t held = std::min(most_rows, checked_mul(blocks(rows, 16), 16));
  const Bytes sums = size_of(Elements(checked_mul(checked_mul(c.b.gpu.multiprocessors, held), widest)), DType::fp32);
  const Bytes sorted = reordered ? eager::data_bytes(x) : Bytes{};
  return stored_matmul(name, std::move(x), weight, q, std::move(bias), {sums, sorted});
}

}  // namespace vlmest
