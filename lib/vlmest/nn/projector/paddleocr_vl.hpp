// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// Each patch is normed, squares of them become rows, two linear layers (transformers models/paddleocr_vl,
/// PaddleOCRProjector).
struct PaddleOcrProjector {
  std::int64_t in = 1152;
  std::int64_t out = 1024;
  std::int64_t merge = 2;
};

struct PaddleOcrMerger {
  ScopeId scope = 0, activation_scope = 0;
  std::int64_t merge = 2;
  LayerNorm norm;
  Linear first, second;
};

inline PaddleOcrMerger make_projector(Context& c, const PaddleOcrProjector& g) {
  PaddleOcrMerger p{.scope = c.b.scope(), .merge = g.merge};
  const std::int64_t square = checked_mul(g.in, checked_mul(g.merge, g.merge));
  p.norm = make_layer_norm(c, "pre_norm", g.in);
  p.first = make_linear(c, "linear_1", square, square, true);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", square, g.out, true);
  return p;
}

/// modeling_paddleocr_vl.py, PaddleOCRProjector.forward: picture by picture; its sides are numbers on the GPU, which
/// the host reads where they shape something.
inline Value forward(Context& c, const PaddleOcrMerger& p, const Value& features, const Value& grid,
                     std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, p.scope);
  std::vector<std::int64_t> patches;
  for (const ImageLayout& i : images) patches.push_back(checked_mul(i.patches.count(), i.frames));
  Value counts = reduce("prod.dim_int", DType::int64, {grid.size(0)}, grid);
  to_host(std::move(counts));
  const std::vector<Value> chunks = split(features, patches, 0);
  std::vector<Value> all;
  Value x, rows, cols, y;  // variables of the loop: each lives until it is bound again
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Grid merged{images[i].patches.rows / p.merge, images[i].patches.cols / p.merge};
    const std::int64_t frames = images[i].frames, width = features.size(1);
    const Value row = select(grid, 0, static_cast<std::int64_t>(i));
    x = chunks[i];
    x = forward(c, p.norm, x);
    rows = floor_divide(select(row, 0, 1));
    cols = floor_divide(select(row, 0, 2));
    item(select(row, 0, 0));
    item(rows);
    item(cols);
    x = transpose(view(x, {frames, merged.rows, p.merge, merged.cols, p.merge, width}), 2, 3);
    {
      Value part = mul(select(row, 0, 0), rows);
      const Value count = mul(std::move(part), cols);  // an argument of reshape: alive as long
      item(count);
      x = reshape(x, {checked_mul(frames, merged.count()), checked_mul(width, p.merge * p.merge)});
    }
    y = forward(c, p.first, x);
    {
      InScope a(c.b, p.activation_scope);
      y = unary(functions::gelu, y);
    }
    y = forward(c, p.second, y);
    all.push_back(y);
  }
  return cat(all, 0);
}

}  // namespace vlmest
