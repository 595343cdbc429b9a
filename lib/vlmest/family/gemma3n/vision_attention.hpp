// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/family/gemma3n/vision_blocks.hpp>
#include <vlmest/graph/eager/attention.hpp>

namespace vlmest {

/// timm 1.0 models/_efficientnet_blocks.py, MobileAttention, with layers/attention2d.py, MultiQueryAttention2d: heads
/// of queries over a map that share one head of keys and values, which a stride may make fewer.
struct MobileAttention {
  struct Keys {
    ScopeId scope = 0;
    std::optional<SameConv> down;
    MapNorm norm;  ///< behind `down`
    SameConv project;
  };
  ScopeId scope = 0, attention_scope = 0, query_scope = 0, output_scope = 0;
  MapNorm norm;
  SameConv query, output;
  Keys key, value;
  MapScale scale;
  std::int64_t heads = 1, head_dim = 1;
};

inline MobileAttention::Keys make_map_keys(Context& c, const char* name, const MapBlockConfig& g, std::int64_t in) {
  Module m(c, name);
  MobileAttention::Keys k{.scope = m.scope};
  if (g.key_stride > 1) {
    k.down =
        make_same_conv(c, "down_conv", {.in = in, .out = in, .side = 3, .stride = g.key_stride, .depthwise = true});
    k.norm = make_map_norm(c, "norm", in, false);
  }
  k.project = make_same_conv(c, "proj", {.in = in, .out = g.head_dim});
  return k;
}

/// In the current scope.
inline MobileAttention make_mobile_attention(Context& c, const MapBlockConfig& g, std::int64_t in) {
  MobileAttention a{.scope = c.b.scope(), .heads = g.heads, .head_dim = g.head_dim};
  const std::int64_t wide = checked_mul(g.heads, g.head_dim);
  a.norm = make_map_norm(c, "norm", in, false);
  {
    Module attention(c, "attn");
    a.attention_scope = attention.scope;
    {
      Module m(c, "query");
      a.query_scope = m.scope;
      a.query = make_same_conv(c, "proj", {.in = in, .out = wide});
    }
    a.key = make_map_keys(c, "key", g, in);
    a.value = make_map_keys(c, "value", g, in);
    Module m(c, "output");
    a.output_scope = m.scope;
    a.output = make_same_conv(c, "proj", {.in = wide, .out = g.out});
  }
  a.scale = make_map_scale(c, g.out);
  return a;
}

/// Keys or values: [N, 1, positions, head_dim].
inline Value forward(Context& c, const MobileAttention::Keys& k, const Value& arg) {
  using namespace eager;
  Value x = arg;
  {
    InScope in(c.b, k.scope);
    if (k.down) {
      x = forward(c, *k.down, x);
      x = forward(c, k.norm, x);
    }
    x = forward(c, k.project, x);
  }
  x = transpose(reshape(x, {x.size(0), x.size(1), -1}), 1, 2);
  return contiguous(unsqueeze(x, 1));
}

/// MultiQueryAttention2d.forward.
inline Value attend(Context& c, const MobileAttention& a, const Value& x) {
  using namespace eager;
  InScope in(c.b, a.attention_scope);
  const std::int64_t n = x.size(0), rows = x.size(2), cols = x.size(3);
  Value q = forward(c, a.query, x);
  q = contiguous(transpose(reshape(q, {n, a.heads, a.head_dim, -1}), -1, -2));
  const Value k = forward(c, a.key, x), v = forward(c, a.value, x);
  Value o = broadcast_attention(q, k, v);
  {
    const Value turned = reshape(transpose(o, 1, 2), {n, rows, cols, a.heads * a.head_dim});
    o = contiguous(permute(turned, {0, 3, 1, 2}));
  }
  return forward(c, a.output, o);
}

inline Value forward(Context& c, const MobileAttention& a, const Value& arg) {
  InScope in(c.b, a.scope);
  Value x = forward(c, a.norm, arg);
  x = attend(c, a, x);
  x = forward(c, a.scale, x);
  return eager::add(x, arg);
}

}  // namespace vlmest
