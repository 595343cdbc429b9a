// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/qformer.hpp>

namespace vlmest {

/// What makes features of one hidden state of the tower for one layer of the language model (transformers
/// models/granite4_vision, Granite4VisionWindowQFormerDownsampler): a Q-Former over each window of patches, whose
/// queries are the window's patches at a lower resolution and learned ones.
struct WindowQFormerConfig {
  QFormerConfig qformer{
      .hidden = 1152, .intermediate = 3072, .layers = 1, .heads = 18, .cross_every = 1, .encoder_hidden = 1152};
  std::int64_t side = 24;   ///< patches on a side of a tile
  std::int64_t window = 8;  ///< patches on a side of a window: the denominator of downsample_rate
  std::int64_t query = 4;   ///< queries on a side of a window: its numerator
  std::int64_t out = 2560;  ///< the language model's width
  bool dropout = true;      ///< projector_dropout is above zero

  std::int64_t windows() const { return side / window; }                   ///< on a side of a tile
  std::int64_t features() const { return checked_mul(windows(), query); }  ///< on a side of a tile
};

struct WindowQFormer {
  ScopeId scope = 0, dropout_scope = 0;
  TensorId query = none, positions = none;
  QFormer qformer;
  LayerNorm norm;
  Linear out;
  std::optional<int> corner;  ///< of each square of two by two patches, in the place of their mean
};

/// In the order of Granite4VisionWindowQFormerDownsampler.__init__, in the current scope.
inline WindowQFormer make_window_qformer(Context& c, const WindowQFormerConfig& g, std::optional<int> corner) {
  WindowQFormer p{.scope = c.b.scope(), .corner = corner};
  const std::int64_t width = g.qformer.hidden;
  p.dropout_scope = c.b.child("dropout");
  {
    Module q(c, "qformer");
    p.qformer = make_qformer(c, g.qformer);
  }
  p.norm = make_layer_norm(c, "norm", width);
  p.query = parameter(c, "query", {1, checked_mul(g.query, g.query), width});
  p.positions = parameter(c, "image_positions", {1, checked_mul(g.window, g.window), width});
  p.out = make_linear(c, "out_linear", width, g.out, true);
  return p;
}

/// _windowed_raster: x[N, side^2, width] -> [N * windows^2, window^2, width].
inline Value windowed_raster(Value x, std::int64_t side, std::int64_t window) {
  using namespace eager;
  const std::int64_t n = x.size(0), windows = side / window;
  x = view(std::move(x), {n, windows, window, windows, window, -1});
  return flatten(flatten(transpose(std::move(x), 2, 3), 0, 2), 1, 2);
}

/// _unwindowed_raster, the way back.
inline Value unwindowed_raster(const Value& x, std::int64_t windows, std::int64_t window) {
  using namespace eager;
  const std::int64_t n = x.size(0) / (windows * windows), side = windows * window;
  Value y = contiguous(transpose(view(x, {n, windows, windows, window, window, -1}), 2, 3));
  return view(std::move(y), {n, side * side, -1});
}

/// modeling_granite4_vision.py, interpolate_downsample: F.interpolate(mode="area") is adaptive_avg_pool2d.
inline Value area_mean(const Value& x, std::int64_t from, std::int64_t to) {
  using namespace eager;
  Value spatial = permute(view(x, {x.size(0), from, from, -1}), {0, 3, 1, 2});
  spatial = adaptive_avg_pool2d(std::move(spatial), to, to);
  return flatten(permute(std::move(spatial), {0, 2, 3, 1}), 1, 2);
}

/// modeling_granite4_vision.py, spatial_offset_downsample: one corner of each square, row by row.
inline Value corners(const Value& x, std::int64_t side, int corner) {
  using namespace eager;
  const std::int64_t n = x.size(0), half = side / 2;
  const Value grid = reshape(x, {n, half, 2, half, 2, x.size(2)});
  return reshape(select(select(grid, 2, corner / 2), 3, corner % 2), {n, -1, x.size(2)});
}

/// Granite4VisionWindowQFormerDownsampler.forward: x[tiles, patches, width] -> [tiles, features, out].
inline Value forward(Context& c, const WindowQFormerConfig& g, const WindowQFormer& p, const Value& arg) {
  using namespace eager;
  InScope in(c.b, p.scope);
  const auto dropped = [&](Value x) {
    if (!g.dropout) return x;
    InScope d(c.b, p.dropout_scope);
    return dropout(c, std::move(x));
  };
  const Value x = forward(c, p.norm, arg);
  const Value windows = windowed_raster(x, g.side, g.window);
  const Value fewer = p.corner ? corners(x, g.side, *p.corner) : area_mean(x, g.side, g.features());
  const Value fewer_windows = windowed_raster(fewer, g.features(), g.query);
  const Value queries = add(Value(c.b, p.query), fewer_windows);
  const Value source = dropped(add(windows, Value(c.b, p.positions)));
  const Value attended = forward(c, p.qformer, queries, source);
  Value out = unwindowed_raster(attended, g.windows(), g.query);
  out = dropped(out);
  return forward(c, p.out, out);
}

}  // namespace vlmest
