// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// A layer of Whisper's encoder (transformers 5.17 models/whisper, WhisperEncoderLayer) as its relatives have it: keys
/// without a bias, the feed-forward part written out in the layer.
struct WhisperLayer {
  ScopeId scope = 0, activation_scope = 0;
  Projections attention;
  LayerNorm norm1, norm2;
  Linear fc1, fc2;
};

/// Widths of a layer.
struct WhisperWidths {
  std::int64_t hidden = 1280;        ///< d_model
  std::int64_t intermediate = 5120;  ///< encoder_ffn_dim
  std::int64_t heads = 20;           ///< encoder_attention_heads
  bool key_bias = false;
  Activation activation = Activation::gelu;
};

/// In the order of WhisperEncoderLayer.__init__ and WhisperAttention.__init__ (k, v, q, out).
inline WhisperLayer make_whisper_layer(Context& c, const WhisperWidths& g, std::int32_t index) {
  Module m(c, "layers", index);
  WhisperLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention.scope = a.scope;
    l.attention.k = make_linear(c, "k_proj", g.hidden, g.hidden, g.key_bias);
    l.attention.v = make_linear(c, "v_proj", g.hidden, g.hidden, true);
    l.attention.q = make_linear(c, "q_proj", g.hidden, g.hidden, true);
    l.attention.out = make_linear(c, "out_proj", g.hidden, g.hidden, true);
  }
  l.norm1 = make_layer_norm(c, "self_attn_layer_norm", g.hidden);
  l.activation_scope = c.b.child("activation_fn");
  l.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, true);
  l.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, true);
  l.norm2 = make_layer_norm(c, "final_layer_norm", g.hidden);
  return l;
}
inline TensorId first_parameter(const WhisperLayer& l) { return l.attention.k.weight; }

/// modeling_qwen2_audio.py, Qwen2AudioAttention.forward: queries are scaled, heads laid out row by row, attention is
/// told not to scale.
inline Attended whisper_attention(Context& c, const WhisperLayer& l, const WhisperWidths& g, const Value& x,
                                  const Value& mask) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t head_dim = g.hidden / g.heads;
  const auto heads = [&](Value y) { return contiguous(split_heads(std::move(y), head_dim)); };
  const Value q = heads(mul_scalar(forward(c, l.attention.q, x)));
  const Value k = heads(forward(c, l.attention.k, x));
  const Value v = heads(forward(c, l.attention.v, x));
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .fp32_softmax = false});
  project_out(c, l.attention.out, a);
  return a;
}

/// The feed-forward part of a layer, whose steps rebind `x`, the norm's result. Whisper writes activation_fn(fc1(x)) as
/// one expression; its relatives that run packed clips take a step each.
inline Value whisper_feed_forward(Context& c, const WhisperLayer& l, const WhisperWidths& g, Value x, bool one_step) {
  Value inner = forward(c, l.fc1, x);
  if (!one_step) x.reset();
  {
    InScope a(c.b, l.activation_scope);
    inner = activate(c, g.activation, inner);
  }
  x.reset();
  return forward(c, l.fc2, inner);
}

/// x + feed_forward(norm2(x)), and in fp16 clamped (modeling_whisper.py, WhisperEncoderLayer.forward, second half).
inline Value whisper_second_half(Context& c, const WhisperLayer& l, const WhisperWidths& g, Value x, bool one_step) {
  using namespace eager;
  const Value residual = std::move(x);
  Value y = forward(c, l.norm2, residual);
  y = whisper_feed_forward(c, l, g, std::move(y), one_step);
  y = add(residual, y);
  if (y.dtype() == DType::fp16) y = clamp(y, ClampedAt::both);
  return y;
}

/// modeling_qwen2_audio.py, Qwen2AudioEncoderLayer.forward.
inline Value forward(Context& c, const WhisperLayer& l, const WhisperWidths& g, Value arg, const Value& mask) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.norm1, x);
  Attended attended = whisper_attention(c, l, g, x, mask);  // its weights are a variable of the layer
  x = std::move(attended.out);
  x = add(residual, x);
  residual.reset();
  return whisper_second_half(c, l, g, std::move(x), true);
}

}  // namespace vlmest
