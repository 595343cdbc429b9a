// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>

/// The layers of the towers over packed patches (Qwen2-VL, Qwen2.5-VL, Qwen3-VL, GLM-4V, MoonViT, Muse Glimmer).
/// `NormLayer` is LayerNorm or RmsNorm, `FeedForward` Mlp or GatedMlp.
namespace vlmest {

template <class NormLayer, class FeedForward, class Attention = PackedAttention>
struct PackedBlock {
  ScopeId scope = 0;
  NormLayer norm1, norm2;
  Attention attention;
  FeedForward mlp;
};

/// A layer whose attention has a projection each for queries, keys and values, behind the output's, in the order of
/// Kimi_K25VisionEncoderLayer.__init__ and MuseGlimmerVisionEncoderLayer.__init__. `g` is the tower's config.
template <class Attention, class Tower>
PackedBlock<LayerNorm, Mlp, Attention> make_split_block(Context& c, const Tower& g, std::int32_t index) {
  Module m(c, "layers", index);
  PackedBlock<LayerNorm, Mlp, Attention> b{.scope = m.scope};
  b.norm1 = make_layer_norm(c, "norm1", g.hidden);
  b.norm2 = make_layer_norm(c, "norm2", g.hidden);
  {
    Module a(c, "attn");
    b.attention.scope = a.scope;
    b.attention.proj = make_linear(c, "proj", g.hidden, g.hidden, true);
    b.attention.q = make_linear(c, "q_proj", g.hidden, g.hidden, true);
    b.attention.k = make_linear(c, "k_proj", g.hidden, g.hidden, true);
    b.attention.v = make_linear(c, "v_proj", g.hidden, g.hidden, true);
  }
  Module p(c, "mlp");
  b.mlp.scope = p.scope;
  b.mlp.activation = g.activation;
  b.mlp.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, true);
  b.mlp.activation_scope = c.b.child("act");
  b.mlp.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, true);
  return b;
}

/// modeling_qwen2_vl.py, Qwen2VLVisionBlock.forward, and the blocks of the same name of its relatives; normed inputs
/// are arguments and live as long as the call.
template <class NormLayer, class FeedForward, class Attention>
Value forward(Context& c, const PackedBlock<NormLayer, FeedForward, Attention>& b, Value arg, std::int64_t heads,
              const CosSin& positions, const Segments& segments) {
  Value x = std::move(arg);
  InScope in(c.b, b.scope);
  {
    Value normed = forward(c, b.norm1, x);
    Value y = forward(c, b.attention, normed, heads, positions, segments);
    normed.reset();
    x = eager::add(x, std::move(y));
  }
  Value normed = forward(c, b.norm2, x);
  Value y = forward(c, b.mlp, normed);
  normed.reset();
  x = eager::add(x, std::move(y));
  return x;
}

/// Runs blocks one after the other; equal ones are recorded once and copied. `kind` sets those apart that run in
/// different segments.
class PackedStack {
 public:
  PackedStack(Context& c, std::int64_t heads, const CosSin& positions)
      : c_(c), repeat_(c.b), heads_(heads), positions_(positions) {}

  template <class Block>
  Value operator()(const Block& b, const Value& x, const Segments& segments, int kind = 0) {
    return repeat_({kind, b.scope, b.norm1.weight}, x, {},
                   [&](const Value& h) { return forward(c_, b, h, heads_, as_called(c_, positions_), segments); });
  }

 private:
  Context& c_;
  LayerRepeater repeat_;
  std::int64_t heads_;
  const CosSin& positions_;
};

}  // namespace vlmest
