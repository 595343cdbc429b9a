// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/mask.hpp>

/// Causal masks in which blocks of tokens see each other in both directions: the prefix of PaliGemma, the pictures of
/// Gemma 3. token_type_ids[B, S] (int64) tell the blocks.
namespace vlmest {

/// Masks by the type of the layer that they are for.
struct LayerMasks {
  Value full;
  Value sliding;
  const Value& of(bool slides) const { return slides ? sliding : full; }
};

/// modeling_paligemma.py, PaliGemmaModel.forward: everything of type 0 (picture and prompt) is one block.
inline Value prefix_blocks(Context& c, const Value& types) {
  using namespace eager;
  Value prefix = compare_scalar("eq.Scalar", types);
  Value zero = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
  Value absent = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
  return where(std::move(prefix), std::move(zero), std::move(absent));
}

/// modeling_gemma3.py, get_block_sequence_ids_for_mask: each run of type 1 is a block of its own.
inline Value image_blocks(Context& c, const Value& types) {
  using namespace eager;
  Value is_image = compare_scalar("eq.Scalar", types);
  Value is_previous = slice(pad(is_image, -1, 1, 0), 1, 0, types.size(1));
  Value start = pointwise("bitwise_not", DType::boolean, is_previous);
  start = pointwise("bitwise_and.Tensor", DType::boolean, is_image, std::move(start));
  Value groups = cumsum(to(start, DType::int32), DType::int64);
  groups = sub_scalar(std::move(groups));
  Value absent = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
  return where(is_image, groups, std::move(absent));
}

/// masking_utils.py, maybe_pad_block_sequence_ids: tokens that the cache holds already belong to no block.
inline Value padded_blocks(const Value& blocks, const MaskShape& m) {
  const std::int64_t missing = m.kv_len + m.kv_offset - blocks.size(1);
  return missing > 0 ? eager::pad(blocks, -1, 0, missing) : blocks;
}

/// The mask as the attention implementation takes it; FlashAttention takes none where nothing is padded.
template <class Build>
Value implemented_mask(Context& c, const Value& padding, Build&& build) {
  if (c.plan.attention == AttentionKind::flash) {
    refuse_unpadding(c);
    check_all_true(padding);
    return {};
  }
  return c.plan.attention == AttentionKind::eager ? additive_mask(c, build()) : build();
}

/// create_causal_mask, or with a window create_sliding_window_causal_mask, with block_sequence_ids: what the causal
/// (and windowed) mask shows, or the same block.
inline Value block_mask(Context& c, const MaskShape& m, const Value& attention_mask, const Value& block_ids) {
  if (!c.stack().makes_masks) return {};
  Value padding = eager::to(attention_mask, DType::boolean);
  Value blocks = padded_blocks(block_ids, m);
  return implemented_mask(c, padding, [&] {
    const MaskGrid g = mask_grid(c, m, false);
    auto causal = [&] { return causal_function(g); };
    auto window = [&] { return window_function(g); };
    auto inside = [&] { return m.window ? and_masks(c, g, window, causal) : causal(); };
    auto same_block = [&] { return block_function(g, blocks); };
    auto shown = [&] { return or_masks(c, g, inside, same_block); };
    auto real = [&] { return padding_function(g, padding); };
    return whole_mask(g, and_masks(c, g, shown, real));
  });
}

/// create_causal_mask with blockwise_overlay as or_mask_function and sliding_window_overlay as and_mask_function, which
/// are evaluated under vmap: inside the window, what the causal mask shows or the same block.
inline Value windowed_block_mask(Context& c, const MaskShape& m, const Value& attention_mask, const Value& blocks) {
  if (!c.stack().makes_masks) return {};
  Value padding = eager::to(attention_mask, DType::boolean);
  return implemented_mask(c, padding, [&] {
    const MaskGrid g = mask_grid(c, m, true);
    auto causal = [&] { return causal_function(g); };
    auto same_block = [&] { return block_function(g, blocks); };
    auto shown = [&] { return or_masks(c, g, causal, same_block); };
    auto window = [&] { return window_function(g); };
    auto inside = [&] { return and_masks(c, g, shown, window); };
    auto real = [&] { return padding_function(g, padding); };
    return whole_mask(g, and_masks(c, g, inside, real));
  });
}

/// modeling_gemma3.py, create_masks_for_vision_model. The sliding mask's sizes are asked for first, which converts the
/// padding mask once more.
inline LayerMasks image_block_masks(Context& c, const MaskShape& full, const MaskShape& sliding,
                                    const Value& attention_mask, const Value& block_ids) {
  if (!c.stack().makes_masks) return {};
  LayerMasks r;
  r.full = block_mask(c, full, attention_mask, block_ids);
  eager::to(attention_mask, DType::boolean);
  Value blocks = padded_blocks(block_ids, sliding);
  r.sliding = windowed_block_mask(c, sliding, attention_mask, blocks);
  return r;
}

}  // namespace vlmest
