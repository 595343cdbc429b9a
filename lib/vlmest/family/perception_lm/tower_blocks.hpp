// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <vlmest/family/perception_lm/vision_config.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/timm_blocks.hpp>

/// The blocks of timm's Eva (timm 1.0: models/eva.py, layers/attention.py, layers/pos_embed_sincos.py).
namespace vlmest {

/// AttentionRope.
struct EvaAttention {
  ScopeId scope = 0, dropout_scope = 0;
  Linear qkv, proj;
};
inline EvaAttention make_eva_attention(Context& c, const EvaVision& g) {
  Module m(c, "attn");
  EvaAttention a{.scope = m.scope};
  a.qkv = make_linear(c, "qkv", g.hidden, checked_mul(g.hidden, 3), g.qkv_bias);
  a.proj = make_linear(c, "proj", g.hidden, g.hidden, true);
  a.dropout_scope = c.b.child("proj_drop");
  return a;
}

/// apply_rot_embed_cat of x[B, H, S, D] by sin and cos[S, D]: neighbouring channels are a pair.
inline Value turned(const Value& x, const Value& sin, const Value& cos) {
  using namespace eager;
  const std::int64_t d = x.size(-1);
  Value straight = mul(x, cos);
  Value negated = neg(slice(x, -1, 1, d, 2));
  std::array<Value, 2> pair{std::move(negated), slice(x, -1, 0, d, 2)};
  Value across = reshape(stack(pair, -1), x.shape());
  across = mul(std::move(across), sin);
  return add(std::move(straight), std::move(across));
}

/// The patches of queries or keys turned, what stands ahead of them as it is, in the type of the values.
inline Value turn_patches(const Value& x, std::int64_t prefix, const Value& sin, const Value& cos, DType t) {
  using namespace eager;
  Value ahead = slice(x, 2, 0, prefix);
  Value patches = turned(slice(x, 2, prefix, x.size(2)), sin, cos);
  return to(cat(std::move(ahead), std::move(patches), 2), t);
}

/// AttentionRope.forward; `rope` [patches, 2 * head_dim] holds sines, then cosines. The caller's argument lives through
/// it.
inline Value forward(Context& c, const EvaVision& g, const EvaAttention& a, Value arg, const Value& rope) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, a.scope);
  const std::int64_t batch = given.size(0), tokens = given.size(1), d = g.head_dim();
  Value qkv = forward(c, a.qkv, given);
  qkv = permute(reshape(std::move(qkv), {batch, tokens, 3, g.heads, d}), {2, 0, 3, 1, 4});
  std::vector<Value> each = unbind(qkv, 0);
  Value q = std::move(each[0]), k = std::move(each[1]);
  const Value v = std::move(each[2]);
  if (rope) {
    const Value sin = slice(rope, -1, 0, d), cos = slice(rope, -1, d, 2 * d);
    stacks::rotate(c, q, k, cos, sin, [&] {
      for (Value* x : {&q, &k}) *x = turn_patches(*x, g.prefix(), sin, cos, v.dtype());
    });
  }
  Value x = timm_attention(c, q, k, v, g.attention_dropout);
  x = forward(c, a.proj, x);
  if (!g.projection_dropout) return x;
  InScope drop(c.b, a.dropout_scope);
  return dropout(c, std::move(x));
}

/// EvaBlock.
struct EvaBlock {
  ScopeId scope = 0;
  LayerNorm norm1, norm2;
  EvaAttention attention;
  TimmMlp mlp;
  TensorId gamma_1 = none, gamma_2 = none;
  std::optional<ScopeId> drop_1, drop_2;
};
inline EvaBlock make_eva_block(Context& c, const EvaVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  EvaBlock b{.scope = m.scope};
  const bool drops = g.drop_path && index > 0;
  b.norm1 = make_layer_norm(c, "norm1", g.hidden);
  b.attention = make_eva_attention(c, g);
  if (g.scaled) b.gamma_1 = parameter(c, "gamma_1", {g.hidden});
  if (drops) b.drop_1 = c.b.child("drop_path1");
  b.norm2 = make_layer_norm(c, "norm2", g.hidden);
  b.mlp = make_timm_mlp(c, g.hidden, g.intermediate);
  if (g.scaled) b.gamma_2 = parameter(c, "gamma_2", {g.hidden});
  if (drops) b.drop_2 = c.b.child("drop_path2");
  return b;
}
inline TensorId first_parameter(const EvaBlock& b) { return b.norm1.weight; }

/// timm 1.0 layers/drop.py, drop_path: one draw for each sample, scaled by what is kept.
inline Value timm_drop_path(Context& c, ScopeId scope, Value branch) {
  using namespace eager;
  if (!c.plan.dropout) return branch;
  InScope in(c.b, scope);
  Shape samples{branch.size(0)};
  for (int i = 1; i < branch.shape().rank(); ++i) samples.push_back(1);
  Value kept = empty(c.b, "new_empty", samples, branch.dtype());
  kept = pointwise_("bernoulli_.float", std::move(kept));
  kept = pointwise_("div_.Tensor", std::move(kept));
  return mul(std::move(branch), std::move(kept));
}

/// EvaBlock.forward: the branches' results are temporaries.
inline Value forward(Context& c, const EvaVision& g, const EvaBlock& b, const Value& x, const Value& rope) {
  using namespace eager;
  InScope in(c.b, b.scope);
  const bool fuses = g.scaled && c.stack().fuses_scaled_sums && !(b.drop_1 && c.plan.dropout);
  const auto sum = [&](const Value& residual, Value branch, TensorId gamma, const std::optional<ScopeId>& drop) {
    if (fuses) return fused_scale("scale_add", true, residual, std::move(branch), Value(c.b, gamma));
    if (gamma != none) branch = mul(Value(c.b, gamma), std::move(branch));
    if (drop) branch = timm_drop_path(c, *drop, std::move(branch));
    return add(residual, std::move(branch));
  };
  Value normed = forward(c, b.norm1, x);
  Value branch = forward(c, g, b.attention, std::move(normed), rope);
  Value h = sum(x, std::move(branch), b.gamma_1, b.drop_1);
  normed = forward(c, b.norm2, h);
  branch = forward(c, b.mlp, std::move(normed), g.projection_dropout);
  return sum(h, std::move(branch), b.gamma_2, b.drop_2);
}

}  // namespace vlmest
