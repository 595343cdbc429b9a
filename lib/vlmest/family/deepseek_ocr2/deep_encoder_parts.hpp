// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/nn/vision/sam.hpp>

/// SAM's tower as the checkpoint deepseek-ai/DeepSeek-OCR brings it (deepencoder.py, ImageEncoderViT): biases of
/// relative positions are added up as torch's fused attention takes them, in one tensor; tables are resampled only
/// where a map is of another size than theirs; norms of the neck are put together of single operations.
namespace vlmest {

/// Two linears of these names in a module "mlp" (MLPBlock and NoTPFeedForward).
inline Mlp make_named_mlp(Context& c, const std::array<const char*, 2>& names, std::int64_t width, std::int64_t inner,
                          Activation activation) {
  Module m(c, "mlp");
  Mlp r{.scope = m.scope, .activation_scope = m.scope, .activation = activation};
  if (activation != Activation::quick_gelu) r.activation_scope = c.b.child("act");
  r.fc1 = make_linear(c, names[0], width, inner, true);
  r.fc2 = make_linear(c, names[1], inner, width, true);
  return r;
}

/// One expression: the argument stays to the end, what is between is dropped where it was read. CLIP's quick_gelu is a
/// function of torch.jit.script, whose three steps run as one kernel (recorded).
inline Value nested_mlp(Context& c, const Mlp& m, Value arg) {
  const Value x = std::move(arg);
  InScope in(c.b, m.scope);
  Value y = forward(c, m.fc1, x);
  {
    InScope a(c.b, m.activation_scope);
    y = m.activation == Activation::quick_gelu ? eager::unary(eager::functions::quick_gelu, std::move(y))
                                               : activate(c, m.activation, std::move(y));
  }
  return forward(c, m.fc2, std::move(y));
}

/// Block.__init__.
inline SamLayer make_image_encoder_layer(Context& c, const SamVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  const bool whole = std::find(g.global_layers.begin(), g.global_layers.end(), index) != g.global_layers.end();
  SamLayer l{.scope = m.scope, .window = whole ? 0 : g.window};
  l.norm1 = make_layer_norm(c, "norm1", g.hidden);
  l.attention = make_sam_attention(c, g, whole || g.window == 0 ? g.image_size / g.patch_size : g.window);
  l.norm2 = make_layer_norm(c, "norm2", g.hidden);
  l.mlp = make_named_mlp(c, {"lin1", "lin2"}, g.hidden, g.mlp, g.activation);
  return l;
}

/// ImageEncoderViT.__init__ up to its neck, whose modules are numbers of a torch.nn.Sequential.
inline SamTower make_image_encoder(Context& c, const SamVision& g) {
  SamTower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embed");
    t.embed_scope = e.scope;
    t.patches = make_patch_conv(c, "proj", g, true);
  }
  const std::int64_t side = g.image_size / g.patch_size;
  t.positions = parameter(c, "pos_embed", {1, side, side, g.hidden});
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_image_encoder_layer(c, g, i); });
  Module n(c, "neck");
  t.neck.scope = n.scope;
  t.neck.conv1 = make_conv(c, "0", {.in = g.hidden, .out = g.out, .side = 1, .padding = 0});
  t.neck.norm1 = make_layer_norm(c, "1", g.out);
  t.neck.conv2 = make_conv(c, "2", {.in = g.out, .out = g.out});
  t.neck.norm2 = make_layer_norm(c, "3", g.out);
  return t;
}

/// get_rel_pos, of as many queries as keys: table[L, D] -> [size, size, D]. The places are computed on the GPU, in
/// fp32.
inline Value table_rows(Context& c, TensorId table, std::int64_t size) {
  using namespace eager;
  const std::int64_t distances = 2 * size - 1;
  Value rows(c.b, table), own;  // own: rel_pos, which stays to the end of the function
  if (rows.size(0) != distances) {
    const DType type = rows.dtype();
    own = to(std::move(rows), DType::fp32);
    Value resized = permute(reshape(own, {1, own.size(0), -1}), {0, 2, 1});
    resized = to(upsample_linear1d(std::move(resized), distances), type);
    rows = permute(reshape(std::move(resized), {-1, distances}), {1, 0});
  }
  const auto places = [&](int dim) { return pointwise("mul.Tensor", DType::fp32, unsqueeze(arange(c.b, size), dim)); };
  const Value queries = places(1), keys = places(0);
  const Value relative = add_scalar(sub(queries, keys));
  return take_rows(rows, to(relative, DType::int64));
}

/// Biases of relative positions of query[N, rows * cols, D]: [batch, heads, queries, rows, 1] and [.., 1, cols].
struct AxisPositions {
  Value by_row, by_col;
};

/// add_decomposed_rel_pos, and the views in Attention.forward.
inline AxisPositions axis_positions(Context& c, const Value& query, const SamAttention& a, std::int64_t heads,
                                    std::int64_t rows, std::int64_t cols) {
  using namespace eager;
  const std::int64_t n = query.size(0), tokens = checked_mul(rows, cols), batch = n / heads;
  AxisPositions r;
  {
    const Value of_rows = table_rows(c, a.rows, rows), of_cols = table_rows(c, a.cols, cols);
    const Value q = reshape(query, {n, rows, cols, query.size(2)});
    r.by_row = along_axis(q, of_rows, 1);
    r.by_col = along_axis(q, of_cols, 2);
    r.by_row = reshape(unsqueeze(std::move(r.by_row), -1), {n, tokens, rows, 1});
    r.by_col = reshape(unsqueeze(std::move(r.by_col), -2), {n, tokens, 1, cols});
  }
  r.by_row = view(std::move(r.by_row), {batch, heads, tokens, rows, 1});
  r.by_col = view(std::move(r.by_col), {batch, heads, tokens, 1, cols});
  return r;
}

/// Attention.forward: [N, H, W, C] of a map or of windows.
inline Value image_encoder_attention(Context& c, const SamAttention& a, const SamVision& g, const Value& arg) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t n = arg.size(0), rows = arg.size(1), cols = arg.size(2), tokens = checked_mul(rows, cols);
  const std::int64_t head_dim = g.hidden / g.heads, stack = checked_mul(n, g.heads);
  const Value qkv = permute(reshape(forward(c, a.qkv, arg), {n, tokens, 3, g.heads, head_dim}), {2, 0, 3, 1, 4});
  std::vector<Value> parts = unbind(reshape(qkv, {3, stack, tokens, head_dim}), 0);
  const AxisPositions axes = axis_positions(c, parts[0], a, g.heads, rows, cols);
  for (Value& part : parts) part = view(part, {n, g.heads, tokens, head_dim});
  const Value positions = view(add(axes.by_row, axes.by_col), {n, g.heads, tokens, tokens});
  Value x = scaled_dot_product_attention(parts[0], parts[1], parts[2], positions, false);
  x = permute(view(std::move(x), {n, g.heads, rows, cols, head_dim}), {0, 2, 3, 1, 4});
  x = reshape(std::move(x), {n, rows, cols, g.hidden});
  return forward(c, a.out, x);
}

/// window_partition, which pads only where the map is not of whole windows.
inline Value windows_of(const Value& map, std::int64_t window) {
  using namespace eager;
  const std::int64_t n = map.size(0), rows = map.size(1), cols = map.size(2), channels = map.size(3);
  if (rows % window != 0 || cols % window != 0) return window_partition(map, window);
  const Value x = view(map, {n, rows / window, window, cols / window, window, channels});
  return view(contiguous(permute(x, {0, 1, 3, 2, 4, 5})), {-1, window, window, channels});
}

/// Block.forward.
inline Value image_encoder_layer(Context& c, const SamLayer& l, const SamVision& g, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  const Value shortcut = x;
  x = forward(c, l.norm1, x);
  const std::int64_t rows = x.size(1), cols = x.size(2);
  if (l.window > 0) x = windows_of(x, l.window);
  x = image_encoder_attention(c, l.attention, g, x);
  if (l.window > 0) x = window_unpartition(x, l.window, rows, cols);
  x = add(shortcut, x);
  Value inner = nested_mlp(c, l.mlp, forward(c, l.norm2, x));
  x = add(x, std::move(inner));
  return x;
}

/// LayerNorm2d.forward of x[N, C, H, W], which the torch.nn.Sequential around it holds meanwhile.
inline Value composed_norm(Context& c, const LayerNorm& n, const Value& arg) {
  using namespace eager;
  Value x = arg;
  InScope in(c.b, n.scope);
  const Value u = mean(x, 1, true);
  const Value s = mean(pow_scalar(sub(x, u)), 1, true);
  Value centred = sub(x, u);
  x = div(std::move(centred), unary("sqrt", add_scalar(s)));
  const auto by_channel = [&](TensorId t) { return unsqueeze(unsqueeze(Value(c.b, t), 1), 2); };
  Value scaled = mul(by_channel(n.weight), x);
  x = add(std::move(scaled), by_channel(n.bias));
  return x;
}

/// get_abs_pos_sam: pos_embed, resampled in fp32 for a map of another size; its copy in fp32 stays to the end.
inline Value image_encoder_positions(Context& c, const SamTower& t, std::int64_t side) {
  using namespace eager;
  Value table(c.b, t.positions);
  if (table.size(1) == side) return table;
  const DType type = table.dtype();
  const Value old = to(permute(std::move(table), {0, 3, 1, 2}), DType::fp32);
  return permute(to(upsample_bicubic2d_aa(old, side, side), type), {0, 2, 3, 1});
}

/// ImageEncoderViT.forward up to its neck's end: pixels[N, 3, S, S] -> [N, out, S / patch, S / patch].
inline Value image_encoder(Context& c, const SamTower& t, const Value& pixels) {
  using namespace eager;
  check_sam_runtime(c);
  InScope in(c.b, t.scope);
  Value x;
  {
    InScope embed(c.b, t.embed_scope);
    x = permute(forward(c, t.patches, pixels), {0, 2, 3, 1});
  }
  x = add(x, image_encoder_positions(c, t, x.size(1)));
  LayerRepeater repeat(c.b, false);
  for (const SamLayer& l : t.layers)
    x = repeat({l.window > 0 ? 1 : 0, l.scope, l.norm1.weight}, x, {},
               [&](const Value& h) { return image_encoder_layer(c, l, *t.config, h); });
  InScope neck(c.b, t.neck.scope);
  Value y = forward(c, t.neck.conv1, permute(x, {0, 3, 1, 2}));
  y = composed_norm(c, t.neck.norm1, y);
  y = forward(c, t.neck.conv2, y);
  return composed_norm(c, t.neck.norm2, y);
}

}  // namespace vlmest
