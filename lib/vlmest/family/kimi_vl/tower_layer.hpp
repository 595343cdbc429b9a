// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/complex_rope.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>
#include <vlmest/nn/vision/picture_mask.hpp>

namespace vlmest {

/// modeling_kimi_vl.py, MoonVitEncoderLayer. One activation module serves the MLPs of all layers.
struct KimiVlBlock {
  ScopeId scope = 0, mlp_scope = 0, activation_scope = 0;
  std::int64_t heads = 0;
  LayerNorm norm0, norm1;
  Linear fc0, fc1, qkv, out;
};

/// In the order of MoonVitEncoderLayer.__init__.
inline KimiVlBlock make_kimi_vl_block(Context& c, std::int64_t width, std::int64_t inner, std::int64_t heads,
                                      std::int32_t index) {
  Module m(c, "blocks", index);
  KimiVlBlock b{.scope = m.scope, .heads = heads};
  b.norm0 = make_layer_norm(c, "norm0", width);
  b.norm1 = make_layer_norm(c, "norm1", width);
  {
    Module p(c, "mlp");
    b.mlp_scope = p.scope;
    b.fc0 = make_linear(c, "fc0", width, inner, true);
    b.fc1 = make_linear(c, "fc1", inner, width, true);
    b.activation_scope = c.b.child("activation");
  }
  b.qkv = make_linear(c, "wqkv", width, checked_mul(width, 3), true);
  b.out = make_linear(c, "wo", width, width, true);
  return b;
}

/// MLP2.forward.
inline Value kimi_vl_mlp(Context& c, const KimiVlBlock& b, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, b.mlp_scope);
  x = forward(c, b.fc0, x);
  {
    InScope a(c.b, b.activation_scope);
    x = eager::unary(eager::functions::gelu, x);
  }
  return forward(c, b.fc1, x);
}

/// The scores of eager_attention, q and k[heads, patches, head_dim]: a boolean mask is added as zeros and ones.
inline Value added_mask_weights(const Value& q, const Value& k, const Value& mask) {
  using namespace eager;
  Value weights = matmul(q, transpose(k, -2, -1));
  weights = div_scalar(std::move(weights));
  weights = add_(std::move(weights), mask);
  return to(softmax(weights, DType::fp32), q.dtype());
}

/// VL_VISION_ATTENTION_FUNCTIONS: q, k and v[patches, heads, head_dim], which stay the caller's -> [patches, width].
/// Throws Error for flash-attn, whose call here no run was compared with.
inline Value kimi_vl_attention(Context& c, const Value& q, const Value& k, const Value& v, const Segments& segments) {
  using namespace eager;
  const std::int64_t patches = q.size(0);
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "Kimi-VL's own call of flash-attn over packed pictures was compared with no run",
                "use plan.attention=sdpa or eager");
  if (c.attention() == AttentionKind::flash)
    return flatten(flash_attn_varlen_func(q, k, v, segments.cu_seqlens, segments.lengths), -2, -1);
  const Value mask = picture_mask(c, segments, patches, "zeros", DType::boolean);
  const auto by_head = [](const Value& x) { return transpose(x, 0, 1); };
  Value weights, out;  // variables of the function, as the mask is: alive until it returns
  if (c.plan.attention == AttentionKind::eager) {
    weights = added_mask_weights(by_head(q), by_head(k), mask);
    out = matmul(weights, by_head(v));
  } else {
    out = unbatched_attention(by_head(q), by_head(k), by_head(v), mask);
  }
  return reshape(transpose(std::move(out), 0, 1), {patches, -1});
}

/// MoonVitEncoderLayer.attention_qkvpacked: x[patches, width] -> the same.
inline Value attend_packed(Context& c, const KimiVlBlock& b, const Value& x, const Segments& segments,
                           const Value& turns) {
  using namespace eager;
  Value qkv = forward(c, b.qkv, x);
  qkv = view(std::move(qkv), {x.size(0), 3, b.heads, -1});
  std::vector<Value> parts = unbind(qkv, 1);
  Value q = std::move(parts[0]), k = std::move(parts[1]);
  const Value v = std::move(parts[2]);
  turn_pairs(c, q, k, unsqueeze(turns, -2));
  Value out = kimi_vl_attention(c, q, k, v, segments);
  out = forward(c, b.out, out);
  return out;
}

/// MoonVitEncoderLayer.forward; the normed states and the attention's result are variables of the function.
inline Value forward(Context& c, const KimiVlBlock& b, Value arg, const Segments& segments, const Value& turns) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, b.scope);
  Value residual = x;
  x = forward(c, b.norm0, x);
  const Value attended = attend_packed(c, b, x, segments, turns);
  x = add(residual, attended);
  residual = x;
  {
    const Value normed = forward(c, b.norm1, x);
    x = kimi_vl_mlp(c, b, normed);
  }
  x = add(residual, x);
  return x;
}

}  // namespace vlmest
