// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/mrope.hpp>
#include <vlmest/nn/sequence.hpp>

/// Positions of three axes as the omni models find them (modeling_qwen2_5_omni.py, get_rope_index): the ranges are made
/// on the host, of counts and grids that are asked for on the device, one number at a time.
namespace vlmest {

/// Without pictures and videos: positions counted by the mask, int64[3, B, S] (Qwen3-Omni: fp32), the same on all axes.
inline Value counted_positions(Context& c, const Value& mask, Value& deltas, DType t) {
  using namespace eager;
  Value positions = sub_scalar(cumsum(t == DType::int64 ? mask : to(mask, t), t));
  {
    Value hidden = compare_scalar("eq.Scalar", mask);
    positions = masked_fill_(std::move(positions), std::move(hidden));
  }
  const Value wide = expand(unsqueeze(positions, 0), {3, positions.size(0), positions.size(1)});
  const auto largest = [&](const Value& of, int dim, bool keep) {
    Builder& b = of.builder();
    const Shape s = reduced(of.shape(), dim, keep);
    const std::array<TensorId, 2> outs{b.result(t, s, "max"), b.result(DType::int64, s, "max_indices")};
    const std::array<TensorId, 1> ins{of.id()};
    b.emit("max.dim",
           MemoryOp{.read = data_bytes(of),
                    .written = size_of(numel(s), t) + size_of(numel(s), DType::int64),
                    .dtype = t,
                    .access = Access::reduction,
                    .elements = numel(of.shape())},
           ins, outs);
    Value values(b, outs[0]);
    const Value places(b, outs[1]);
    return values;
  };
  const Value most = largest(largest(wide, 0, false), -1, true);
  Value next = add_scalar(most);
  Value tokens = sum(mask, -1, true);
  deltas = sub(std::move(next), std::move(tokens));
  (void)c;
  return wide;
}

}  // namespace vlmest
