// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/vision/idefics3.hpp>
#include <vlmest/unit/error.hpp>

/// MiniCPM-V 2.6's tower: modeling_navit_siglip.py, SiglipVisionTransformer. Pieces of pictures stand in a batch, each
/// of them one row of patches, filled up to the longest. The modules are Idefics3's; positions are looked up on the
/// host, padding is told by a mask of its own making, and attention is written out whatever is asked for
/// (modeling_minicpmv.py, init_vision_module).
namespace vlmest {

/// Patches of the longest piece.
inline std::int64_t longest(std::span<const Grid> pieces) {
  std::int64_t most = 0;
  for (const Grid& g : pieces) most = std::max(most, g.count());
  return most;
}

/// SiglipVisionEmbeddings.forward: pixels[N, channels, patch, L * patch], mask bool[N, 1, L], sizes int32[N, 2] ->
/// [N, L, hidden]. Sizes and masks come to the host piece by piece.
inline Value minicpmv_embeddings(Context& c, const Idefics3Tower& t, const Value& pixels, const Value& mask,
                                 const Value& sizes) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const Value features = patch_sequence(forward(c, t.patches, pixels));
  const std::int64_t n = mask.size(0), length = mask.size(2);
  for (std::int64_t i = 0; i < n; ++i) {
    const Value size = select(sizes, 0, i);
    for (const int axis : {0, 1}) {
      item(mul_scalar(pointwise("reciprocal", DType::fp32, select(size, 0, axis))));
    }
    to_host(view(select(mask, 0, i), {-1}));
  }
  const Value places = from_host(c.b, {n, length}, DType::int64, "_to_copy");
  Value positions = forward(c, t.positions, places);
  Value x = add(features, std::move(positions));
  if (c.input_gradients && !c.b.needs_grad(x.id()))
    throw Error("plan.checkpointing",
                "MiniCPM-V's frozen tower with inputs that collect a gradient, as checkpointing makes them, was not "
                "compared with a run",
                "give plan.input_gradients=off, or leave plan.checkpointing out");
  return x;
}

/// transformers modeling_attn_mask_utils.py, _prepare_4d_attention_mask: bool[N, L] -> additive [N, 1, L, L].
inline Value expanded_mask(Context& c, const Value& mask) {
  using namespace eager;
  const std::int64_t n = mask.size(0), length = mask.size(1);
  const Value wide = to(expand(unsqueeze(unsqueeze(mask, 1), 1), {n, 1, length, length}), c.dtype());
  const Value inverted = pointwise("sub.Tensor", wide.dtype(), wide);  // torch.tensor(1.0) - expanded_mask
  Value padding = to(inverted, DType::boolean);
  return masked_fill(inverted, std::move(padding));
}

/// SiglipVisionTransformer.forward; `padded`: pieces are of several lengths.
inline Value forward(Context& c, const Idefics3Tower& t, const Value& pixels, const Value& patches, const Value& sizes,
                     bool padded) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const Value embedded = minicpmv_embeddings(c, t, pixels, patches, sizes);
  const Value flat = view(patches, {patches.size(0), -1});
  item(reduce("any", DType::boolean, Shape{}, pointwise("bitwise_not", DType::boolean, flat)));
  Value mask;
  if (padded) mask = expanded_mask(c, flat);
  const Plan written_out = without_sdpa(c.plan);
  Context own = with_plan(c, written_out);
  TowerOutput out;
  const Value encoded =
      run_layers(own, t.layers, embedded, 0, TowerInput{.pixels = pixels, .images = {}}, out,
                 [&](const ClipLayer& l, const Value& h) { return forward(own, l, h, t.config->heads, mask); });
  return forward(c, t.post_norm, encoded);
}

}  // namespace vlmest
