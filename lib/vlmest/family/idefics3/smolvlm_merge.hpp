// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// modeling_smolvlm.py, SmolVLMModel.inputs_merger: each placeholder takes the feature at (block, place in the block),
/// where a block is one tile's features[tiles, tokens, width]. ids[B, S], embeds[B, S, width].
inline Value merge_blocks(const Value& ids, const Value& embeds, const Value& features) {
  using namespace eager;
  const std::int64_t selected = checked_mul(features.size(0), features.size(1)), batch = ids.size(0);
  const DType t = embeds.dtype();
  Builder& b = ids.builder();
  auto integer = [](const char* name, Value v) { return pointwise(name, DType::int64, std::move(v)); };
  Value mask = compare_scalar("eq.Scalar", ids);
  Value per_sample = sum(mask, 1, false);
  {
    Value rest = integer("remainder.Scalar", per_sample);
    Value zero = compare_scalar("eq.Scalar", std::move(rest));
    const int kernels = batch == 1 ? 0 : 1;  // of one element it is a copy
    Value divisible = reduce("all", DType::boolean, Shape{}, std::move(zero), {}, kernels);
    Value checked = is_all_true(divisible);  // torch_compilable_check
    item(std::move(checked));
  }
  Value blocks = integer("floor_divide", per_sample);
  Value running = cumsum(blocks, DType::int64);
  Value offsets = constant_pad(std::move(running), batch + 1);
  Value block_offset = slice(offsets, 0, 0, batch);
  Value row_cum = cumsum(mask, DType::int64);
  Value chunk = integer("floor_divide", sub_scalar(row_cum));
  Value local = integer("remainder.Scalar", sub_scalar(row_cum));
  Value block = add(unsqueeze(block_offset, 1), chunk);
  Value image_embeds = fill(b, "zeros_like", embeds.shape(), t);
  {
    Value at_block = masked_index(block, mask, selected);
    Value at_local = masked_index(local, mask, selected);
    Shape rows{selected, features.size(2)};
    const TensorId r = b.result(t, rows, "index");
    const Bytes n = size_of(numel(rows), t);
    const GradEdge e = edge(features);
    const Value blocks_taken = saved(at_block, static_cast<bool>(e)),
                rows_taken = saved(at_local, static_cast<bool>(e));
    Value features_arg = features;
    Value chosen = emit1(b, "index.Tensor", MemoryOp{.read = n + data_bytes(at_block) * 2, .written = n, .dtype = t}, r,
                         {}, features_arg, at_block, at_local);
    // Two factors of a place and their sum.
    const Bytes making = size_of(Elements(selected), DType::int64) * 3;
    differentiable(chosen, "IndexBackward0", {e},
                   [blocks_taken, rows_taken, whole = e.shape, selected, making](Gradients& g) {
                     g.out[0] = index_backward(g.in[0], blocks_taken, whole, selected, making);
                   });
    masked_index_put_(image_embeds, mask, std::move(chosen), selected);
  }
  return where(unsqueeze(mask, -1), image_embeds, embeds);
}

}  // namespace vlmest
