// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Pixtral's vision transformer (transformers models/pixtral, PixtralVisionModel): images of any size, their patches
/// packed into one sequence in which each image sees itself alone, rotary positions by row and column, no biases.
struct PixtralVision {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 4096;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t image_size = 1024;  ///< longest side that the processor leaves
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu;
};

struct PixtralLayer {
  ScopeId scope = 0;
  RmsNorm attention_norm, ffn_norm;
  GatedMlp feed_forward;
  Projections attention;
};

struct PixtralTower {
  const PixtralVision* config = nullptr;
  ScopeId scope = 0;
  PatchConv patches;
  RmsNorm pre_norm;
  std::vector<PixtralLayer> layers;
  Rope rope;
};

/// Its processor pads the batch to the tallest and widest image and hands over each one's own size
/// (image_processing_pixtral.py, _pad_for_batching).
inline Shape pixel_shape(const PixtralVision& g, std::span<const ImageLayout> images) {
  Shape s{static_cast<std::int64_t>(images.size()), g.channels, 0, 0};
  for (const auto& i : images) {
    s[2] = std::max(s[2], i.resized.height);
    s[3] = std::max(s[3], i.resized.width);
  }
  return s;
}
constexpr bool takes_image_sizes(const PixtralVision&) { return true; }

/// The order of PixtralAttentionLayer.__init__ and PixtralAttention.__init__ (k, v, q, o).
inline PixtralLayer make_pixtral_layer(Context& c, const PixtralVision& g, std::int32_t index) {
  Module m(c, "layers", index);
  PixtralLayer l{.scope = m.scope};
  l.attention_norm = make_rms_norm(c, "attention_norm", g.hidden);
  l.feed_forward = make_gated_mlp(c, "feed_forward", g.hidden, g.intermediate, false, g.activation);
  {
    Module a(c, "attention");
    l.attention = make_projections(c, {.hidden = g.hidden, .keys_first = true});
  }
  l.ffn_norm = make_rms_norm(c, "ffn_norm", g.hidden);
  return l;
}

inline PixtralTower make_tower(Context& c, const PixtralVision& g) {
  PixtralTower t{.config = &g, .scope = c.b.scope()};
  t.patches = make_patch_conv(c, "patch_conv", g, false);
  t.pre_norm = make_rms_norm(c, "ln_pre", g.hidden);
  {
    Module e(c, "transformer");
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_pixtral_layer(c, g, i); });
  }
  t.rope = make_rope(c, "patch_positional_embedding", g.hidden / g.heads);
  return t;
}

/// Patches of each image, [hidden, rows, columns] views of the batch's convolution: the padding is cut off. Sizes that
/// lie on the GPU are read by the host, side by side (modeling_pixtral.py, PixtralVisionModel.forward).
inline std::vector<Value> pixtral_crops(Context& c, const PixtralTower& t, const TowerInput& input) {
  using namespace eager;
  const Value patches = input_embedding(c, forward(c, t.patches, input.pixels));
  std::vector<Value> crops, embeds = unbind(std::move(patches), 0);
  std::size_t at = 0;
  for (const auto& image : input.images) {
    if (input.image_sizes) {
      Value height = unary("floor_divide", select(select(input.image_sizes, 0), 0));
      Value width = unary("floor_divide", select(select(input.image_sizes, 0), 0));
      item(height);
      item(width);
    }
    crops.push_back(slice(slice(embeds[at++], 1, 0, image.patches.rows), 2, 0, image.patches.cols));
  }
  return crops;
}

/// modeling_pixtral.py, PixtralVisionRotaryEmbedding.forward: positions[N, 2] -> cos, sin[N, head_dim]; half of the
/// frequencies turn with the row, half with the column.
inline CosSin axial_positions(Context& c, const Rope& r, const Value& positions) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const std::int64_t n = positions.size(0), quarter = (r.dim / 2 + 1) / 2;
  Value inv = unsqueeze(Value(c.b, r.inv_freq), 0);
  Value pos = to(unsqueeze(positions, -1), DType::fp32);
  const Autocast off(c.b, std::nullopt);
  Value freqs = view(mm(view(pos, {-1, 1}), inv), {n, 2, -1});
  Value cosine = mul_scalar(eager::cos(freqs));
  Value sine = mul_scalar(eager::sin(freqs));
  auto recompose = [&](const Value& f) {
    Value rows = select(slice(f, -1, 0, quarter), 1, 0), columns = select(slice(f, -1, quarter, r.dim / 2), 1, 1);
    Value both = cat(rows, columns, -1);
    return cat(both, both, -1);
  };
  cosine = recompose(cosine);
  sine = recompose(sine);
  CosSin out;
  out.cos = to(cosine, c.dtype());
  out.sin = to(sine, c.dtype());
  return out;
}

/// modeling_pixtral.py, generate_block_attention_mask: additive [1, 1, N, N], zero within an image.
inline Value block_attention_mask(Context& c, std::span<const std::int64_t> lengths, std::int64_t n) {
  using namespace eager;
  Value mask = fill(c.b, "full", {n, n}, c.dtype());
  std::int64_t at = 0;
  for (auto length : lengths) {
    fill_(slice(slice(mask, 0, at, at + length), 1, at, at + length));
    at += length;
  }
  return unsqueeze(unsqueeze(mask, 0), 0);
}

/// What the layers share.
struct PixtralPacking {
  Segments images;  ///< patches of each
  CosSin positions;
  Value mask;
};

/// FlashAttention keeps the images apart by their lengths, one call for all; the others by the mask. The lengths, which
/// modeling_flash_attention_utils.py reads off the position ids anew in every layer, are a few hundred bytes: left out.
inline bool apart_by_length(const Context& c) { return c.attention() == AttentionKind::flash; }

/// modeling_pixtral.py, PixtralAttention.forward.
inline Attended pixtral_attention(Context& c, const PixtralLayer& l, const Value& x, std::int64_t heads,
                                  const PixtralPacking& p) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  Qkv y = project(c, l.attention, x);
  split_heads(y, x.size(2) / heads);
  apply_rope(c, y.q, y.k, p.positions, 0);
  Attended a;
  if (apart_by_length(c)) {
    cast_for_flash(y.q, y.k, y.v);
    auto rows = [](const Value& v) { return select(transpose(v, 1, 2), 0, 0); };
    a.out = flash_attn_varlen_func(rows(y.q), rows(y.k), rows(y.v), p.images.cu_seqlens, p.images.lengths);
  } else {
    a = stacks::attend(c, {y.q, y.k, y.v, p.mask, false});
  }
  a.out = contiguous(reshape(a.out, {batch, tokens, -1}));
  a.out = forward(c, l.attention.out, a.out);
  return a;
}

/// modeling_pixtral.py, PixtralAttentionLayer.forward.
inline Value forward(Context& c, const PixtralLayer& l, Value arg, std::int64_t heads, const PixtralPacking& p) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.attention_norm,
      [&](const Value& x) { return pixtral_attention(c, l, x, heads, p); }, l.ffn_norm,
      [&](const Value& x) { return forward(c, l.feed_forward, x); });
}

/// modeling_pixtral.py, PixtralVisionModel.forward: [1, patches of all images, hidden]. The crops, and with them the
/// convolution's result, and the last image's index grids are variables that live to the end.
inline TowerOutput forward(Context& c, const PixtralTower& t, const TowerInput& input) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const std::vector<Value> crops = pixtral_crops(c, t, input);
  PixtralPacking p;
  std::vector<Value> sequences, grids;
  for (const auto& crop : crops) {
    p.images.lengths.push_back(checked_mul(crop.size(1), crop.size(2)));
    sequences.push_back(transpose(flatten(crop, 1, 2), 0, 1));
  }
  Value x = unsqueeze(cat(sequences, 0), 0);
  x = forward(c, t.pre_norm, x);

  Value rows, columns;
  for (const auto& crop : crops) {
    const std::int64_t h = crop.size(1), w = crop.size(2);
    Value row_range = arange(c.b, h);
    Value column_range = arange(c.b, w);
    rows = expand(view(std::move(row_range), {h, 1}), {h, w});
    columns = expand(view(std::move(column_range), {1, w}), {h, w});
    std::array<Value, 2> pair;
    pair[0] = flatten(rows, 0, 1);
    pair[1] = flatten(columns, 0, 1);
    grids.push_back(stack(pair, -1));
  }
  Value position_ids = cat(grids, 0);
  p.positions = axial_positions(c, t.rope, position_ids);
  if (!apart_by_length(c)) p.mask = block_attention_mask(c, p.images.lengths, x.size(1));

  TowerOutput out;
  if (input.keep_hidden_states) out.hidden_states.push_back(x);
  out.last = x;
  LayerRepeater repeat(c.b);
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    const auto& l = t.layers[i];
    LayerRepeater::Layer place{0, l.scope, l.attention_norm.weight};
    place.input_read_elsewhere = input.reads_input_of(i, t.layers.size());
    out.last = repeat(place, out.last, {}, [&](const Value& h) { return forward(c, l, h, t.config->heads, p); });
    if (input.keep_hidden_states) out.hidden_states.push_back(out.last);
  }
  return out;
}

}  // namespace vlmest
