// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/graph/eager/bucketize.hpp>
#include <vlmest/graph/eager/routing.hpp>
#include <vlmest/nn/image_processor/windows.hpp>
#include <vlmest/nn/vision/packed_siglip.hpp>

namespace vlmest {

/// MiniCPM-V 4.6's vision transformer (transformers models/minicpmv4_6, MiniCPMV4_6VisionModel): SigLIP over pieces of
/// pictures packed into one row, whose patches are merged by windows behind one of its layers. Defaults:
/// MiniCPMV4_6VisionConfig.
struct MiniCpmVision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t image_size = 224;  ///< side of the table of positions, in pixels
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t window = 2;        ///< window_kernel_size, a side of what is merged inside the tower
  std::int64_t insert_layer = 6;  ///< insert_layer_id: windows are merged behind it, one of the layers
  bool merges = true;             ///< downsample_mode 16x; 4x leaves the windows as they are
  Activation activation = Activation::gelu_tanh;
};

/// Half the sides.
constexpr Grid halved(Grid g) { return {g.rows / 2, g.cols / 2}; }

/// Attention inside windows, then an MLP over each window as one row, beside the mean of its patches.
struct WindowMerger {
  ScopeId scope = 0, activation_scope = 0;
  ClipLayer attention;  ///< its projections and its first norm alone
  LayerNorm pre_norm;
  Linear fc1, fc2;
};

struct MiniCpmTower {
  const MiniCpmVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  std::vector<ClipLayer> layers;
  LayerNorm post_norm;
  WindowMerger merger;
};

/// In the order of MiniCPMV4_6ViTWindowAttentionMerger.__init__.
inline WindowMerger make_window_merger(Context& c, const MiniCpmVision& g) {
  Module m(c, "vit_merger");
  WindowMerger r{.scope = m.scope};
  const std::int64_t cell = checked_mul(g.window, g.window);
  r.attention = {.scope = m.scope, .split_each = true};
  {
    Module a(c, "self_attn");
    r.attention.attention = make_projections(
        c, {.hidden = g.hidden, .qkv_bias = true, .out_bias = true, .keys_first = true, .out = "out_proj"});
  }
  r.attention.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  r.pre_norm = make_layer_norm(c, "pre_norm", checked_mul(g.hidden, cell));
  r.fc1 = make_linear(c, "linear_1", checked_mul(g.hidden, cell), checked_mul(g.intermediate, cell), true);
  r.activation_scope = c.b.child("act");
  r.fc2 = make_linear(c, "linear_2", checked_mul(g.intermediate, cell), g.hidden, true);
  return r;
}

/// In the order of MiniCPMV4_6VisionModel.__init__.
inline MiniCpmTower make_tower(Context& c, const MiniCpmVision& g) {
  MiniCpmTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size;
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", checked_mul(side, side), g.hidden);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
    });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  t.merger = make_window_merger(c, g);
  return t;
}

/// Patches of all pieces.
inline std::int64_t total(std::span<const Grid> pieces) {
  std::int64_t n = 0;
  for (const Grid& g : pieces) n = checked_add(n, g.count());
  return n;
}

/// pixel_values[1, channels, patch_size, patches * patch_size] and target_sizes[pieces, 2], int32.
struct MiniCpmImages {
  Value pixels;
  Value sizes;
};

/// vision_utils.py, get_vision_nearest_position_ids: int64[patches], for each the entry of the table of positions that
/// lies nearest.
inline Value nearest_position_ids(Context& c, std::int64_t side, const Value& sizes, std::span<const Grid> pieces) {
  using namespace eager;
  const Value boundaries = fill(c.b, "arange.start_step", {side - 1}, DType::fp32);
  to_host(sizes);
  std::vector<Value> all;
  Value rows, cols, row, col;  // variables of the loop: kept until the next piece rebinds them
  for (const Grid& g : pieces) {
    const auto places = [&](std::int64_t n) { return pointwise("div.Tensor", DType::fp32, arange(c.b, n)); };
    rows = places(g.rows);
    cols = places(g.cols);
    row = bucketize(rows, boundaries);
    col = bucketize(cols, boundaries);
    Value first = mul_scalar(unsqueeze(row, 1));
    all.push_back(view(add(std::move(first), col), {-1}));
  }
  return cat(all, 0);
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6VisionEmbeddings.forward -> [1, patches, hidden].
inline Value minicpm_embeddings(Context& c, const MiniCpmTower& t, const MiniCpmImages& in,
                                std::span<const Grid> pieces) {
  using namespace eager;
  InScope scope(c.b, t.embeddings_scope);
  const Value patches = patch_sequence(input_embedding(c, forward(c, t.patches, in.pixels)));
  const Value ids = nearest_position_ids(c, t.config->image_size / t.config->patch_size, in.sizes, pieces);
  const Value positions = unsqueeze(forward(c, t.positions, ids), 0);
  return add(patches, positions);
}

/// torch.nn.functional.pad(torch.cumsum(sizes[:, 0] * sizes[:, 1], 0, int32), (1, 0)): each piece sees itself.
inline Segments piece_segments(Context& c, const Value& sizes, std::span<const Grid> pieces) {
  using namespace eager;
  Segments s;
  for (const Grid& g : pieces) s.lengths.push_back(g.count());
  Value ends = cumsum(mul(select(sizes, 1, 0), select(sizes, 1, 1)), DType::int32);
  s.cu_seqlens = constant_pad(std::move(ends), static_cast<std::int64_t>(pieces.size()) + 1);
  check_longest(c, s);
  return s;
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6ViTWindowAttentionMerger.get_window_index: windows of patches, worked out on the
/// host; the boundaries, one for each window of the padded grid, go to the device.
inline Segments merger_windows(Context& c, std::int64_t side, const Value& sizes, std::span<const Grid> pieces) {
  using namespace eager;
  Value grid = pad(sizes, -1, 1, 0);
  to_host(grid);
  Segments s;
  std::int64_t boundaries = 1;
  for (const Grid& g : pieces) {
    boundaries = checked_add(boundaries, checked_mul(g.rows / side + 1, g.cols / side + 1));
    const auto windows = static_cast<std::size_t>(g.count() / (side * side));
    if (s.lengths.size() + windows > image_processor::max_windows)
      throw Error("plan.images", "more windows than " + std::to_string(image_processor::max_windows),
                  "give fewer or smaller images");
    s.lengths.insert(s.lengths.end(), windows, side * side);
  }
  Value all = from_host(c.b, {boundaries}, DType::int32);
  s.cu_seqlens = unique_consecutive(all, static_cast<std::int64_t>(s.lengths.size()) + 1);
  return s;
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6ViTWindowAttentionMerger.forward: x[1, patches, hidden] -> [1, windows, hidden].
inline Value forward(Context& c, const WindowMerger& m, const MiniCpmVision& g, Value arg, const Value& sizes,
                     std::span<const Grid> pieces) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  const std::int64_t cell = g.window * g.window, windows = x.size(1) / cell;
  Value residual = x;
  x = forward(c, m.attention.norm1, x);
  const Segments inside = merger_windows(c, g.window, sizes, pieces);
  const Value index = from_host(c.b, {x.size(1)}, DType::int64, "_to_copy");
  x = take_of_row(x, index);
  x = packed_siglip_attention(c, m.attention, x, {.heads = g.heads, .segments = &inside}, nullptr);
  {
    Ranked order = sort(index);
    order.values.reset();
    x = take_of_row(x, std::move(order.indices));
  }
  x = add(residual, x);
  item(select(select(sizes, 0, 0), 0, 0));
  item(select(select(sizes, 0, 0), 0, 1));
  const auto n = static_cast<std::int64_t>(pieces.size());
  const Grid merged{pieces[0].rows / g.window, pieces[0].cols / g.window};
  const Value cells = permute(view(x, {n, merged.rows, g.window, merged.cols, g.window, g.hidden}), {0, 1, 3, 2, 4, 5});
  const Value flat = reshape(cells, {windows, checked_mul(cell, g.hidden)});
  residual = mean(reshape(cells, {windows, cell, g.hidden}), 1, false);
  Value y = forward(c, m.pre_norm, flat);
  y = forward(c, m.fc1, y);
  {
    InScope a(c.b, m.activation_scope);
    y = unary(functions::gelu, y);
  }
  y = forward(c, m.fc2, y);
  return unsqueeze(add(y, residual), 0);
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6VisionModel.forward -> last_hidden_state[1, patches, hidden], a quarter of them
/// where windows are merged. Throws Error for pieces that the merger's view does not hold.
inline Value forward(Context& c, const MiniCpmTower& t, const MiniCpmImages& in, std::vector<Grid> pieces) {
  using namespace eager;
  const MiniCpmVision& g = *t.config;
  InScope scope(c.b, t.scope);
  if (g.merges && total(pieces) != checked_mul(pieces[0].count(), static_cast<std::int64_t>(pieces.size())))
    throw Error("plan.images",
                "pieces of " + std::to_string(pieces[0].count()) +
                    " patches beside others: transformers 5.17 merges "
                    "all by the first one's sides, and fails",
                "give pictures that are not cut into slices (max_slice_nums 1) and of one size, or downsample_mode 4x");
  Value x = minicpm_embeddings(c, t, in, pieces);
  Value embeddings;  // where no windows are merged, the encoder has a forward of its own, whose caller keeps them
  if (!g.merges) embeddings = x;
  Segments segments = piece_segments(c, in.sizes, pieces);
  Value sizes = in.sizes;
  PackedSiglipStack stack(c);
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    const bool merged = g.merges && static_cast<std::int64_t>(i) > g.insert_layer;
    x = stack(t.layers[i], x, {.heads = g.heads, .segments = &segments}, merged ? 1 : 0);
    if (!g.merges || static_cast<std::int64_t>(i) != g.insert_layer) continue;
    x = forward(c, t.merger, g, x, sizes, pieces);
    sizes = floor_divide(sizes);
    for (Grid& p : pieces) p = halved(p);
    segments = piece_segments(c, sizes, pieces);
  }
  embeddings.reset();
  return forward(c, t.post_norm, x);
}

}  // namespace vlmest
