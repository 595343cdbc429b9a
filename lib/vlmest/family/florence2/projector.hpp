// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Positions by row and column added to the tower's map, a sinusoid of time to those, their mean ahead, a linear and a
/// norm (transformers 5.17 models/florence2, Florence2MultiModalProjector).
struct Florence2ProjectorConfig {
  std::int64_t in = 1024;       ///< width of the tower's last stage
  std::int64_t out = 1024;      ///< projection_dim
  std::int64_t positions = 50;  ///< max_position_embeddings, of a side
  std::int64_t times = 100;     ///< max_temporal_embeddings
};

struct Florence2Projector {
  ScopeId scope = 0, position_scope = 0, time_scope = 0;
  Linear projection;
  LayerNorm norm;
  Embedding rows, columns;
  TensorId times = none;
};

/// In the order of Florence2MultiModalProjector.__init__.
inline Florence2Projector make_projector(Context& c, const Florence2ProjectorConfig& g) {
  Florence2Projector p{.scope = c.b.scope()};
  p.projection = make_linear(c, "image_projection", g.in, g.out, false);
  p.norm = make_layer_norm(c, "image_proj_norm", g.out);
  {
    Module m(c, "image_position_embed");
    p.position_scope = m.scope;
    p.rows = make_embedding(c, "row_embeddings", g.positions, g.in / 2);
    p.columns = make_embedding(c, "column_embeddings", g.positions, g.in - g.in / 2);
  }
  Module m(c, "visual_temporal_embed");
  p.time_scope = m.scope;
  p.times = buffer(c, "pos_idx_to_embed", {g.times, g.in}, c.dtype());
  return p;
}

/// modeling_florence2.py, Florence2VisionLearnedAbsolutePositionEmbedding2D.forward: [N, C, h, w].
inline Value map_positions(Context& c, const Florence2Projector& p, const Value& map) {
  using namespace eager;
  InScope in(c.b, p.position_scope);
  const std::int64_t n = map.size(0), height = map.size(2), width = map.size(3);
  const Value width_values = arange(c.b, width);
  const Value height_values = arange(c.b, height);
  const Value x = forward(c, p.columns, width_values);
  const Value y = forward(c, p.rows, height_values);
  Value pos;
  {
    Value across = repeat(unsqueeze(x, 0), {height, 1, 1});
    Value down = repeat(unsqueeze(y, 1), {1, width, 1});
    pos = cat(std::move(across), std::move(down), -1);
  }
  pos = permute(pos, {2, 0, 1});
  pos = unsqueeze(pos, 0);
  pos = repeat(pos, {n, 1, 1, 1});
  return pos;
}

/// Florence2MultiModalProjector.forward: map[N, C, h, w] -> [N, 1 + h w, out].
inline Value forward(Context& c, const Florence2Projector& p, Value arg) {
  using namespace eager;
  Value features = std::move(arg);
  InScope in(c.b, p.scope);
  Value at = map_positions(c, p, features);
  Value positioned = add(features, std::move(at));
  positioned = transpose(flatten(positioned, 2, 3), 1, 2);
  Value time;
  {
    InScope t(c.b, p.time_scope);
    time = slice(Value(c.b, p.times), 0, 0, 1);
  }
  time = unsqueeze(time, 1);
  Value tokens = add(positioned, time);
  tokens = unsqueeze(tokens, 1);
  const Value spatial = mean(tokens, 2, false);
  const Value temporal = mean(tokens, 1, false);
  features = cat(spatial, temporal, 1);
  features = forward(c, p.projection, features);
  features = forward(c, p.norm, features);
  return features;
}

}  // namespace vlmest
