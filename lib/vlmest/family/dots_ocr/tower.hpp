// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/family/dots_ocr/attention.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/patch_merger.hpp>

/// dots.ocr's vision transformer (modeling_dots_vision.py, DotsVisionTransformer): patches of all pictures as one
/// sequence, norms over the root of the mean square, gated MLPs, rotation over rows and columns, and a merger.
namespace vlmest {

/// DotsVisionConfig.
struct DotsVision {
  std::int64_t hidden = 1536;  ///< embed_dim
  std::int64_t intermediate = 4224;
  std::int64_t layers = 42;
  std::int64_t heads = 12;
  std::int64_t channels = 3;
  std::int64_t patch_size = 14;
  std::int64_t frames = 1;  ///< temporal_patch_size: of these the first is read
  std::int64_t merge = 2;
  std::int64_t out_hidden = 1536;  ///< hidden_size: width after the merger
  bool bias = false;               ///< use_bias: of the blocks' linears
  bool post_norm = true;
  DotsAttention attention = DotsAttention::flash;
};

struct DotsBlock {
  ScopeId scope = 0;
  PackedAttention attention;
  RmsNorm norm1, norm2;
  GatedMlp mlp;
};

struct DotsTower {
  const DotsVision* config = nullptr;
  ScopeId scope = 0, patches_scope = 0, rope_scope = 0;
  PatchConv patches;
  RmsNorm patch_norm;
  TensorId inv_freq = none;
  std::vector<DotsBlock> blocks;
  std::optional<RmsNorm> post_norm;
  PatchMerger<LayerNorm> merger;
};

/// Its RMSNorm casts what it has normed, then multiplies by the weight, as Llama 4's does.
inline RmsNorm make_dots_norm(Context& c, const char* name, std::int64_t width) {
  return make_rms_norm(c, name, width, RmsNorm::Kind::llama4);
}

/// In the order of DotsVisionBlock.__init__ and DotsSwiGLUFFN.__init__.
inline DotsBlock make_dots_block(Context& c, const DotsVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  DotsBlock b{.scope = m.scope};
  b.attention = make_packed_attention(c, g.hidden, g.bias, g.bias);
  b.norm1 = make_dots_norm(c, "norm1", g.hidden);
  {
    Module p(c, "mlp");
    b.mlp.scope = b.mlp.activation_scope = p.scope;  // F.silu is no module
    b.mlp.gate = make_linear(c, "fc1", g.hidden, g.intermediate, g.bias);
    b.mlp.down = make_linear(c, "fc2", g.intermediate, g.hidden, g.bias);
    b.mlp.up = make_linear(c, "fc3", g.hidden, g.intermediate, g.bias);
  }
  b.norm2 = make_dots_norm(c, "norm2", g.hidden);
  return b;
}

/// In the order of DotsVisionTransformer.__init__.
inline DotsTower make_tower(Context& c, const DotsVision& g) {
  DotsTower t{.config = &g, .scope = c.b.scope()};
  {
    Module outer(c, "patch_embed");
    Module inner(c, "patchifier");
    t.patches_scope = inner.scope;
    t.patches = make_patch_conv(c, "proj", g, true);
    t.patch_norm = make_dots_norm(c, "norm", g.hidden);
  }
  {
    Module r(c, "rotary_pos_emb");
    t.rope_scope = r.scope;
    t.inv_freq = buffer(c, "inv_freq", {g.hidden / g.heads / 4}, DType::fp32);
  }
  t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_dots_block(c, g, i); });
  if (g.post_norm) t.post_norm = make_dots_norm(c, "post_trunk_norm", g.hidden);
  t.merger = make_patch_merger<LayerNorm>(c, g.hidden, g.merge, g.out_hidden, [&](const char* name, std::int64_t n) {
    return make_layer_norm(c, name, n);
  });
  return t;
}

/// DotsPatchEmbed.forward: pixels[patches, channels * frames * side * side] -> [patches, hidden].
inline Value embed_patches(Context& c, const DotsTower& t, const Value& pixels) {
  using namespace eager;
  const DotsVision& g = *t.config;
  InScope in(c.b, t.patches_scope);
  Value x = select(view(pixels, {-1, g.channels, g.frames, g.patch_size, g.patch_size}), 2, 0);
  x = embed_patches(c, t.patches, x);
  x = forward(c, t.patch_norm, x);
  return x;
}

/// get_pos_ids_by_grid for a picture's row of grid_thw, on the host but for the sizes, which are read from the device
/// one by one: of the rows, then of the columns, each reshaped by halves that are computed there.
inline void read_grid(const Value& row) {
  using namespace eager;
  const Value height = select(row, 0, 1), width = select(row, 0, 2);
  const auto places = [&](const Value& first, const Value& second) {
    item(first);
    item(second);
    const Value rows = floor_divide(height);
    const Value columns = floor_divide(width);
    item(rows);
    item(columns);
  };
  places(height, width);
  places(width, height);
  item(select(row, 0, 0));
}

/// rot_pos_emb: angles of every patch, fp32[patches, head_dim / 2], looked up by places that are on the host.
inline Value patch_angles(Context& c, const DotsTower& t, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  const auto n = static_cast<std::int64_t>(images.size());
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    read_grid(select(grid, 0, i));
    const Grid& g = images[static_cast<std::size_t>(i)].patches;
    longest = std::max({longest, g.rows, g.cols});
  }
  const Value sides = slice(grid, 1, 1, 3);
  const Bytes copy = n > 1 ? data_bytes(sides) : Bytes{};  // max of all elements reads them in a row
  const Value most = reduce("max", DType::int64, Shape{}, sides, copy, n > 1 ? 2 : 1);
  Value turns;
  {
    InScope in(c.b, t.rope_scope);
    item(most);
    const Value places = fill(c.b, "arange", {longest}, DType::fp32);
    turns = mul(unsqueeze(places, 1), Value(c.b, t.inv_freq));
  }
  return flatten(host_index(turns, {total_patches(images), 2}), 1, 2);
}

/// Where each picture's patches begin and end, in one expression but for the zero in front.
inline Segments picture_segments(const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  Segments s;
  for (const ImageLayout& i : images) s.lengths.push_back(i.patches.count());
  const auto n = static_cast<std::int64_t>(images.size());
  {
    Value areas = mul(select(grid, 1, 1), select(grid, 1, 2));
    Value index = repeat_interleave_index(select(grid, 1, 0), n);
    const Value each = index_select(std::move(areas), 0, std::move(index));
    s.cu_seqlens = cumsum(each, DType::int32);
  }
  s.cu_seqlens = constant_pad(s.cu_seqlens, n + 1);
  return s;
}

/// DotsVisionBlock.forward: what its norms give are arguments, alive until the calls return.
inline Value forward(Context& c, const DotsBlock& b, DotsAttention kind, Value arg, std::int64_t heads,
                     const Value& angles, const Segments& segments) {
  Value x = std::move(arg);
  InScope in(c.b, b.scope);
  {
    Value normed = forward(c, b.norm1, x);
    Value y = forward(c, b.attention, kind, normed, heads, angles, segments);
    normed.reset();
    x = eager::add(x, std::move(y));
  }
  Value normed = forward(c, b.norm2, x);
  Value y = forward(c, b.mlp, normed);
  normed.reset();
  x = eager::add(x, std::move(y));
  return x;
}

/// DotsVisionTransformer.forward: pixels in fp32 are cast to bf16, whatever type the weights have; grid int64[N, 3] ->
/// merged features[patches / merge^2, out_hidden].
inline Value forward(Context& c, const DotsTower& t, const PackedImages& input, std::span<const ImageLayout> images) {
  using namespace eager;
  const DotsVision& g = *t.config;
  InScope in(c.b, t.scope);
  Value x = to(input.pixels, DType::bf16);
  x = embed_patches(c, t, x);
  const Value angles = patch_angles(c, t, input.grid, images);
  const Segments segments = picture_segments(input.grid, images);
  const DotsAttention kind = g.attention == DotsAttention::flash ? DotsAttention::eager : g.attention;
  LayerRepeater repeat(c.b);
  for (const DotsBlock& b : t.blocks)
    x = repeat({0, b.scope, b.attention.qkv.weight}, x, {},
               [&](const Value& h) { return forward(c, b, kind, h, g.heads, angles, segments); });
  if (t.post_norm) x = forward(c, *t.post_norm, x);
  x = forward(c, t.merger, x);
  return x;
}

}  // namespace vlmest
