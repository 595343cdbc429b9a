// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/gemma4_attention.hpp>
#include <vlmest/nn/mask_blocks.hpp>

/// Masks of the models that Gemma 4's text layers stand in.
namespace vlmest {

/// modeling_gemma4.py, get_block_sequence_ids_for_mask: each run of image or video tokens is a block of its own.
inline Value vision_blocks(Context& c, const Value& types) {
  using namespace eager;
  Value is_vision;
  {
    const Value image = compare_scalar("eq.Scalar", types);
    const Value video = compare_scalar("eq.Scalar", types);
    is_vision = pointwise("bitwise_or.Tensor", DType::boolean, image, video);
  }
  const Value is_previous = pointwise("roll", DType::boolean, is_vision);
  fill_(select(is_previous, -1, 0));
  Value starts = pointwise("bitwise_not", DType::boolean, is_previous);
  starts = pointwise("bitwise_and.Tensor", DType::boolean, is_vision, std::move(starts));
  Value groups = cumsum(to(starts, DType::int32), DType::int64);
  groups = sub_scalar(std::move(groups));
  Value absent = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
  return where(is_vision, groups, std::move(absent));
}

/// masking_utils.py, create_masks_for_generate: a mask for each type of layer that there is, in the order of a set of
/// strings, here the full layers' first.
inline LayerMasks masks_of_types(Context& c, const Gemma4TextConfig& g, const Value& attention_mask,
                                 const MaskShape& full, const MaskShape& sliding) {
  LayerMasks r;
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  if (slides < g.layers) r.full = causal_mask(c, full, attention_mask);
  if (slides > 0) r.sliding = causal_mask(c, sliding, attention_mask);
  return r;
}

}  // namespace vlmest
