// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/perception_lm/tower_blocks.hpp>
#include <vlmest/graph/eager/extremes.hpp>

/// What timm's Eva makes of the states behind its layers (timm 1.0 models/eva.py, forward_head; layers/pool1d.py;
/// layers/attention_pool.py, AttentionPoolLatent). PerceptionLM reads none of it.
namespace vlmest {

struct EvaPooling {
  ScopeId attention_scope = 0, dropout_scope = 0;
  TensorId latent = none;
  Linear q, kv, proj;
  LayerNorm norm, pool_norm;
  TimmMlp mlp;
};

/// In the current scope. The parameters of an attention pool are there whether it runs or not.
inline EvaPooling make_eva_pooling(Context& c, const EvaVision& g) {
  EvaPooling p;
  if (g.pool == EvaPool::attention) {
    Module m(c, "attn_pool");
    p.attention_scope = m.scope;
    p.latent = parameter(c, "latent", {1, 1, g.hidden});
    p.q = make_linear(c, "q", g.hidden, g.hidden, true);
    p.kv = make_linear(c, "kv", g.hidden, checked_mul(g.hidden, 2), true);
    p.proj = make_linear(c, "proj", g.hidden, g.hidden, true);
    p.norm = make_layer_norm(c, "norm", g.hidden);
    p.mlp = make_timm_mlp(c, g.hidden, g.pool_intermediate);
  }
  if (g.pool_norm) p.pool_norm = make_layer_norm(c, "fc_norm", g.hidden);
  p.dropout_scope = c.b.child("head_drop");
  return p;
}

/// AttentionPoolLatent.forward: states[N, S, hidden] -> [N, hidden].
inline Value attention_pool(Context& c, const EvaPooling& p, const EvaVision& g, const Value& states) {
  using namespace eager;
  InScope in(c.b, p.attention_scope);
  const std::int64_t batch = states.size(0), d = g.hidden / g.pool_heads;
  const Value latent = expand(Value(c.b, p.latent), {batch, -1, -1});
  const Value q = transpose(reshape(forward(c, p.q, latent), {batch, 1, g.pool_heads, d}), 1, 2);
  const Value kv =
      permute(reshape(forward(c, p.kv, states), {batch, states.size(1), 2, g.pool_heads, d}), {2, 0, 3, 1, 4});
  const std::vector<Value> each = unbind(kv, 0);
  Value x = timm_attention(c, q, each[0], each[1]);
  x = forward(c, p.proj, x);
  Value normed = forward(c, p.norm, x);
  Value branch = forward(c, p.mlp, std::move(normed));
  x = add(x, std::move(branch));
  return select(x, 1, 0);
}

/// Eva.pool.
inline Value eva_pool(Context& c, const EvaPooling& p, const EvaVision& g, const Value& states) {
  using namespace eager;
  if (g.pool == EvaPool::states) return states;
  if (g.pool == EvaPool::attention) return attention_pool(c, p, g, states);
  if (g.pool == EvaPool::token) return select(states, 1, 0);
  const Value patches = slice(states, 1, g.prefix(), states.size(1));
  if (g.pool == EvaPool::mean) return mean(patches, 1, false);
  Value largest = amax(patches, 1);
  if (g.pool == EvaPool::max) return largest;
  Value average = mean(patches, 1, false);
  return mul_scalar(add(std::move(largest), std::move(average)));
}

/// Eva.forward_head without a classifier.
inline Value forward(Context& c, const EvaPooling& p, const EvaVision& g, const Value& states) {
  Value x = eva_pool(c, p, g, states);
  if (g.pool_norm) x = forward(c, p.pool_norm, x);
  if (!g.pool_dropout) return x;
  InScope drop(c.b, p.dropout_scope);
  return dropout(c, std::move(x));
}

}  // namespace vlmest
