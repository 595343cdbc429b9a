// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/nn/vision/mllama.hpp>

/// The forward pass of Mllama's tower over pictures of several tiles.
namespace vlmest {

/// pixels[B, M, T, C, H, W], ids[B, M] and tile_mask[B, M, T] (int64) of M pictures a sequence with T tiles each.
struct MllamaVisionInput {
  Value pixels;
  Value ids;
  Value tile_mask;
};

/// The states of a stack of layers; the output object keeps every layer's result.
struct MllamaEncoded {
  Value last;
  std::vector<Value> hidden_states;
};

/// used: layers whose results are used again later (negative ones count from the end). In training, a layer that starts
/// from one of these is run by itself: the gradient of its input has a part already when the layer adds its own.
inline MllamaEncoded encode(Context& c, std::span<const MllamaVisionLayer> layers, const Value& x, const Value& mask,
                            std::int64_t heads, std::span<const std::int64_t> used = {}) {
  MllamaEncoded r{.last = x};
  LayerRepeater repeat(c.b, false);  // MllamaVisionEncoderLayer is no GradientCheckpointingLayer
  const auto count = static_cast<std::int64_t>(layers.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const MllamaVisionLayer& l = layers[static_cast<std::size_t>(i)];
    const auto run = [&](const Value& h) { return forward(c, l, h, mask, heads); };
    const bool shared =
        std::any_of(used.begin(), used.end(), [&](std::int64_t u) { return (u < 0 ? u + count : u) == i - 1; });
    r.last = shared && c.b.grad_enabled() ? run(r.last) : repeat({0, l.scope, l.attention.first()}, r.last, {}, run);
    r.hidden_states.push_back(r.last);
  }
  return r;
}

/// modeling_mllama.py, MllamaPrecomputedAspectRatioEmbedding.forward: x[N, T, tokens, hidden].
inline Value forward(Context& c, const MllamaTileEmbedding& e, const MllamaVision& g, const Value& x,
                     const Value& ids) {
  using namespace eager;
  InScope in(c.b, e.scope);
  Value tiles = forward(c, e.table, ids);
  tiles = view(tiles, {-1, g.max_tiles, 1, g.hidden});
  if (c.stack().fuses_scaled_sums) return fused_scale("gated_add", true, x, std::move(tiles), Value(c.b, e.gate));
  Value opening = unary(functions::tanh, Value(c.b, e.gate));
  tiles = mul(tiles, std::move(opening));
  return add(x, tiles);
}

/// modeling_mllama.py, MllamaPrecomputedPositionEmbedding.forward: x[N, T, tokens, hidden].
inline Value mllama_positions(Context& c, const MllamaVisionTower& t, const Value& arg, const Value& ids) {
  using namespace eager;
  const MllamaVision& g = *t.config;
  Value x = arg;
  InScope in(c.b, t.position_scope);
  Value gate(c.b, t.position_gate);
  Value positions;
  if (c.stack().fuses_scaled_sums) {
    positions = Value(c.b, t.position_table);
  } else {
    Value closed = rsub_scalar(unary(functions::tanh, gate));
    positions = mul(std::move(closed), Value(c.b, t.position_table));
    x = add(x, view(positions, {1, 1, g.tile_tokens(), g.hidden}));
  }
  Value tiles = forward(c, t.tile_table, ids);
  tiles = view(tiles, {x.size(0), g.max_tiles, g.tile_tokens(), g.hidden});
  if (c.stack().fuses_scaled_sums) return fused_scale("gated_add", true, x, positions, std::move(tiles), gate);
  Value opening = unary(functions::tanh, gate);
  Value gated = mul(std::move(opening), tiles);
  x = add(x, gated);
  return x;
}

/// modeling_mllama.py, _prepare_aspect_ratio_attention_mask: an additive mask [N, 1, T * tokens, T * tokens] as the
/// outer product of a column that marks padding.
inline Value mllama_tile_mask(Context& c, Value arg, std::int64_t tokens, std::int64_t padding) {
  using namespace eager;
  Value mask = std::move(arg);
  const std::int64_t n = mask.size(0), tiles = mask.size(1);
  mask = to(view(mask, {n, tiles, 1, 1}), c.dtype());
  mask = repeat(mask, {1, 1, tokens, 1});
  // Without padding the slice [-0:] is everything.
  pointwise_("fill_.Tensor", slice(mask, 2, padding == 0 ? 0 : tokens - padding, tokens));
  mask = rsub_scalar(mask);
  mask = view(mask, {n, tiles * tokens, 1});
  Value outer = matmul(mask, transpose(mask, -1, -2));
  mask = mul_scalar(std::move(outer));
  return unsqueeze(mask, 1);
}

/// torch.nn.functional.pad of the tokens by zeros: a copy, also where there is nothing to add
/// (aten/src/ATen/native/PadNd.cpp, constant_pad_nd).
inline Value pad_tokens(Context& c, Value x, std::int64_t padding) {
  using namespace eager;
  Shape s = x.shape();
  s[2] = checked_add(s[2], padding);
  const Bytes n = size_of(numel(s), x.dtype());
  const TensorId r = c.b.result(x.dtype(), s, "constant_pad_nd");
  const MemoryOp op{.read = data_bytes(x),
                    .written = padding > 0 ? n + data_bytes(x) : n,
                    .dtype = x.dtype(),
                    .kernels = padding > 0 ? 2 : 0};
  const GradEdge e = edge(x);
  Value padded = emit1(c.b, "constant_pad_nd", op, r, {}, x);
  // constant_pad_nd_backward pads by less than nothing: the part that was there is copied.
  differentiable(padded, "ConstantPadNdBackward0", {e}, [from = e.shape](Gradients& g) {
    const DType t = g.in[0].dtype();
    Builder& b = g.in[0].builder();
    const Bytes part = size_of(numel(from), t);
    const TensorId cut = b.result(t, from, "constant_pad_nd");
    g.out[0] = emit1(b, "constant_pad_nd", MemoryOp{.read = part, .written = part, .dtype = t}, cut, {}, g.in[0]);
  });
  return padded;
}

/// modeling_mllama.py, MllamaVisionModel.forward: [B, M, T, tile tokens, hidden * (1 + intermediate layers)].
inline Value forward(Context& c, const MllamaVisionTower& t, const MllamaVisionInput& input) {
  using namespace eager;
  const MllamaVision& g = *t.config;
  InScope in(c.b, t.scope);
  const Shape p = input.pixels.shape();
  const std::int64_t batch = p[0], media = p[1], tiles = p[2], n = checked_mul(batch, media), dim = g.hidden;
  Value pixels = view(input.pixels, {checked_mul(n, tiles), p[3], p[4], p[5]});
  Value ids = view(input.ids, {n, 1});
  const Value patches = input_embedding(c, forward(c, t.patches, pixels));
  Value x = patch_sequence(patches);
  std::int64_t tokens = x.size(1);
  x = reshape(x, {n, tiles, -1, dim});
  x = forward(c, t.pre_tile, g, x, ids);
  x = reshape(x, {n * tiles, tokens, dim});
  {
    Value first = expand(Value(c.b, t.class_embedding), {n * tiles, 1, dim});
    x = cat(first, x, 1);
  }
  tokens += 1;
  x = view(x, {n, tiles, tokens, dim});
  x = mllama_positions(c, t, x, ids);
  x = forward(c, t.pre_norm, x);
  const std::int64_t padding = (8 - tokens % 8) % 8, padded = tokens + padding;
  x = pad_tokens(c, x, padding);
  Value mask = view(input.tile_mask, {n, -1});
  mask = c.stack().makes_masks ? mllama_tile_mask(c, mask, padded, padding) : Value{};
  x = view(x, {n, -1, dim});
  const MllamaEncoded local = [&] {
    InScope s(c.b, t.local_scope);
    return encode(c, t.local, x, mask, g.heads, g.intermediate_layers);
  }();
  x = local.last;
  x = forward(c, t.post_norm, x);
  x = view(x, {n, tiles, padded, dim});
  x = forward(c, t.post_tile, g, x, ids);
  x = view(x, {n, tiles * padded, dim});
  const MllamaEncoded global = [&] {
    InScope s(c.b, t.global_scope);
    return encode(c, t.global, x, mask, g.heads);
  }();
  x = global.last;
  auto without_padding = [&](Value& y) {
    y = slice(view(y, {n, tiles, padded, -1}), 2, 0, tokens);
    y = reshape(y, {batch, media, tiles, tokens, -1});
  };
  without_padding(x);
  if (g.intermediate_layers.empty()) return x;
  std::vector<Value> kept;
  for (auto i : g.intermediate_layers) {
    const auto count = static_cast<std::int64_t>(local.hidden_states.size());
    kept.push_back(local.hidden_states.at(static_cast<std::size_t>(i < 0 ? i + count : i)));
  }
  Value between = stack(kept, -1);
  without_padding(between);
  x = cat(x, between, -1);
  return x;
}

}  // namespace vlmest
