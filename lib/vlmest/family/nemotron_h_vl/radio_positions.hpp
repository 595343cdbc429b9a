// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/nn/context.hpp>

/// Sizes of C-RADIO and where its tiles get their positions from (NVlabs/RADIO radio/vit_patch_generator.py).
namespace vlmest {

struct RadioVision {
  std::int64_t hidden = 1280;
  std::int64_t intermediate = 5120;
  std::int64_t layers = 32;
  std::int64_t heads = 16;
  std::int64_t patch_size = 16;
  std::int64_t image_size = 512;  ///< of a tile
  std::int64_t max_size = 2048;   ///< cpe_max_size: positions reach so far
  std::int64_t class_tokens = 4;  ///< one for each teacher, or one
  std::int64_t summaries = 3;     ///< teachers with a summary, whose class tokens are taken out
  std::int64_t registers = 6;
  std::int64_t channels = 3;

  std::int64_t side() const { return image_size / patch_size; }     ///< patches of a tile
  std::int64_t max_side() const { return max_size / patch_size; }   ///< and of the table of positions
  std::int64_t prefix() const { return class_tokens + registers; }  ///< tokens ahead of the patches
  std::int64_t head_dim() const { return hidden / heads; }
};

/// What training mode draws for each tile: a place and a size of the part of the table that it gets
/// (ViTPatchGenerator._get_pos_embeddings). `locals`: the function's variables.
inline Value random_windows(Context& c, const RadioVision& g, std::int64_t tiles, std::vector<Value>& locals) {
  using namespace eager;
  const std::int64_t n = g.side();
  const auto drawn = [&](const Shape& s) { return fill(c.b, "rand", s, DType::fp32); };
  Value scale = add_scalar(mul_scalar(drawn({tiles, 1, 1})));
  Value aspect = unary(functions::exp, add_scalar(mul_scalar(drawn({tiles, 1, 1}))));
  Value scale_x = mul(scale, aspect);
  Value scale_y;
  {
    Value inverse = mul_scalar(unary("reciprocal", aspect));
    scale_y = mul(scale, std::move(inverse));
  }
  Value scale_xy;
  {
    std::array<Value, 2> both{scale_x, scale_y};
    scale_xy = pointwise_("clamp_", stack(both, -1));
  }
  Value pos_xy;
  {
    Value any = drawn({tiles, 1, 1, 2});
    Value rest = unary("rsub.Scalar", scale_xy);
    pos_xy = mul(std::move(any), std::move(rest));
  }
  const auto steps = [&] { return fill(c.b, "linspace", {n}, DType::fp32); };
  Value lin_x = expand(unsqueeze(unsqueeze(steps(), 0), 0), {tiles, n, -1});
  Value lin_y = expand(unsqueeze(unsqueeze(steps(), 0), 2), {tiles, -1, n});
  Value lin_xy;
  {
    std::array<Value, 2> both{lin_x, lin_y};
    lin_xy = stack(both, -1);
  }
  Value grid = mul(lin_xy, scale_xy);
  grid = add(std::move(grid), pos_xy);
  grid = pointwise_("mul_.Tensor", std::move(grid));
  locals = {scale, aspect, scale_x, scale_y, scale_xy, pos_xy, lin_x, lin_y, lin_xy};
  return pointwise_("sub_.Tensor", std::move(grid));
}

/// ViTPatchGenerator.get_pos_enc: the table[1, places, hidden] resampled to a tile's patches, in training mode to
/// windows of it that are drawn for each tile. [1 or T, patches, hidden].
inline Value radio_positions(Context& c, const RadioVision& g, Value table, std::int64_t tiles) {
  using namespace eager;
  const std::int64_t n = g.side(), all = g.max_side();
  Value map = permute(reshape(std::move(table), {1, all, all, -1}), {0, 3, 1, 2});
  if (c.plan.dropout) {
    std::vector<Value> locals;
    const Value grid = random_windows(c, g, tiles, locals);
    Value wide = expand(to(map, DType::fp32), {tiles, -1, -1, -1});
    Value windows = aligned_grid_sample(std::move(wide), grid);
    map = to(std::move(windows), c.dtype());
  } else {
    Value wide = to(map, DType::fp32);
    Value resampled = upsample_bilinear2d(std::move(wide), n, n);
    map = to(std::move(resampled), c.dtype());
  }
  return permute(flatten(map, 2, 3), {0, 2, 1});
}

}  // namespace vlmest
