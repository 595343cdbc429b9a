// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/eager/map_convolution.hpp>
#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// One stage of DaViT.
struct DavitStage {
  std::int64_t depth = 1;
  std::int64_t width = 128;
  std::int64_t heads = 4;                            ///< of window attention
  std::int64_t groups = 4;                           ///< of channel attention
  std::int64_t kernel = 7, stride = 4, padding = 3;  ///< of the convolution that begins it
  bool norm_first = false;                           ///< patch_prenorm
};

/// DaViT (Ding et al., arXiv:2204.03645; transformers 5.17 models/florence2, Florence2VisionBackbone): stages of
/// convolutions, each followed by blocks of attention within windows and attention between channels.
struct DavitVision {
  std::vector<DavitStage> stages;
  std::int64_t channels = 3;
  std::int64_t window = 12;
  std::int64_t image_size = 768;  ///< of the processor
  double mlp_ratio = 4.0;
  bool qkv_bias = true;
  double drop_path = 0.1;  ///< drop_path_rate, of the last branch
  Activation activation = Activation::gelu;
};

/// A convolution of its own for each channel, and what follows it.
struct DavitHalf {
  TensorId conv_weight = none, conv_bias = none;
  ScopeId conv_scope = 0, drop_scope = 0;
  LayerNorm norm;
  bool drops = false;
};

/// Florence2VisionSpatialBlock or Florence2VisionChannelBlock.
struct DavitSubBlock {
  ScopeId scope = 0, attention_scope = 0, ffn_scope = 0, activation_scope = 0;
  DavitHalf mix, feed;
  Linear qkv, proj, fc1, fc2;
};

struct DavitBlock {
  ScopeId scope = 0;
  DavitSubBlock spatial, channel;
};

struct DavitStageModules {
  ScopeId scope = 0, conv_scope = 0;
  TensorId weight = none, bias = none;
  LayerNorm norm;
  std::vector<DavitBlock> blocks;
};

struct DavitTower {
  const DavitVision* config = nullptr;
  ScopeId scope = 0;
  std::vector<DavitStageModules> stages;
};

/// Pixels of a side behind every stage.
inline std::int64_t davit_side(const DavitVision& g, std::int64_t side) {
  for (const DavitStage& s : g.stages) side = (side + 2 * s.padding - s.kernel) / s.stride + 1;
  return side;
}

inline DavitHalf make_davit_half(Context& c, const char* conv, const char* norm, std::int64_t width) {
  DavitHalf h;
  {
    Module m(c, conv);
    h.conv_scope = m.scope;
    h.conv_weight = parameter(c, "weight", {width, 1, 3, 3});
    h.conv_bias = parameter(c, "bias", {width});
  }
  h.norm = make_layer_norm(c, norm, width);
  return h;
}

/// In the order of Florence2VisionSpatialBlock.__init__, or of Florence2VisionChannelBlock.__init__, which is its like.
inline DavitSubBlock make_davit_sub_block(Context& c, const DavitVision& g, const DavitStage& s, const char* name,
                                          const char* attention, bool drops) {
  Module m(c, name);
  DavitSubBlock b{.scope = m.scope};
  b.mix = make_davit_half(c, "conv1", "norm1", s.width);
  {
    Module a(c, attention);
    b.attention_scope = a.scope;
    b.qkv = make_linear(c, "qkv", s.width, checked_mul(s.width, 3), g.qkv_bias);
    b.proj = make_linear(c, "proj", s.width, s.width, true);
  }
  b.mix.drop_scope = c.b.child("drop_path1");
  b.feed = make_davit_half(c, "conv2", "norm2", s.width);
  {
    Module f(c, "ffn");
    b.ffn_scope = f.scope;
    const auto inner = static_cast<std::int64_t>(static_cast<double>(s.width) * g.mlp_ratio);
    b.activation_scope = c.b.child("activation_fn");
    b.fc1 = make_linear(c, "fc1", s.width, inner, true);
    b.fc2 = make_linear(c, "fc2", inner, s.width, true);
  }
  b.feed.drop_scope = c.b.child("drop_path2");
  b.mix.drops = b.feed.drops = drops;
  return b;
}

/// In the order of Florence2VisionBackbone's parameters: convolutions, then blocks. Probabilities of stochastic depth
/// grow from zero by equal steps: the first branch of all has none.
inline DavitTower make_tower(Context& c, const DavitVision& g) {
  DavitTower t{.config = &g, .scope = c.b.scope()};
  std::int64_t in = g.channels;
  for (std::size_t i = 0; i < g.stages.size(); ++i) {
    const DavitStage& s = g.stages[i];
    DavitStageModules m;
    Module e(c, "convs", static_cast<std::int32_t>(i));
    m.scope = e.scope;
    {
      Module conv(c, "conv");
      m.conv_scope = conv.scope;
      m.weight = parameter(c, "weight", {s.width, in, s.kernel, s.kernel});
      m.bias = parameter(c, "bias", {s.width});
    }
    m.norm = make_layer_norm(c, "norm", s.norm_first ? in : s.width);
    t.stages.push_back(std::move(m));
    in = s.width;
  }
  bool first = true;
  for (std::size_t i = 0; i < g.stages.size(); ++i) {
    const DavitStage& s = g.stages[i];
    Module list(c, "blocks", static_cast<std::int32_t>(i));
    for (std::int64_t j = 0; j < s.depth; ++j) {
      Module block(c, "", static_cast<std::int32_t>(j));
      DavitBlock b{.scope = block.scope};
      b.spatial = make_davit_sub_block(c, g, s, "spatial_block", "window_attn", g.drop_path > 0 && !first);
      first = false;
      b.channel = make_davit_sub_block(c, g, s, "channel_block", "channel_attn", g.drop_path > 0);
      t.stages[i].blocks.push_back(b);
    }
  }
  return t;
}

/// [N, C, H, W] over [N, H W, C].
inline Value as_map(const Value& x, std::int64_t rows, std::int64_t cols) {
  using namespace eager;
  const std::int64_t n = x.size(0), width = x.size(2);
  return view(transpose(x, 1, 2), {n, width, rows, cols});
}

/// modeling_florence2.py, Florence2VisionConvEmbed.forward.
inline Value forward_stem(Context& c, const DavitStage& s, const DavitStageModules& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  const auto normed = [&] {
    x = permute(x, {0, 2, 3, 1});
    x = forward(c, m.norm, x);
    x = permute(x, {0, 3, 1, 2});
  };
  if (s.norm_first) normed();
  {
    InScope conv(c.b, m.conv_scope);
    x = conv2d(x, Value(c.b, m.weight), Value(c.b, m.bias), {.stride = s.stride, .padding = s.padding});
  }
  if (!s.norm_first) normed();
  return x;
}

/// modeling_florence2.py, Florence2VisionWindowAttention.forward: x[N, H, W, C] -> [N, H W, C]. A map is filled up to
/// whole windows; one that needs none is copied.
inline Value window_attention(Context& c, const DavitVision& g, const DavitStage& s, const DavitSubBlock& b,
                              Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, b.attention_scope);
  const std::int64_t n = x.size(0), rows = x.size(1), cols = x.size(2), width = x.size(3), w = g.window;
  const auto missing = [&](std::int64_t side) { return (w - side % w) % w; };
  x = pad(x, {{1, 0, missing(rows)}, {2, 0, missing(cols)}});
  const std::int64_t down = x.size(1) / w, across = x.size(2) / w;
  x = view(x, {n, down, w, across, w, width});
  Value windows = contiguous(permute(x, {0, 1, 3, 2, 4, 5}));
  windows = view(windows, {-1, w * w, width});
  const std::int64_t count = windows.size(0), tokens = windows.size(1);
  const Value qkv =
      permute(reshape(forward(c, b.qkv, windows), {count, tokens, 3, s.heads, width / s.heads}), {2, 0, 3, 1, 4});
  const std::vector<Value> parts = unbind(qkv, 0);
  Attended a = stacks::attend(c, {.q = parts[0], .k = parts[1], .v = parts[2], .fp32_softmax = false});
  windows = view(a.out, {count, tokens, width});
  a.out.reset();
  windows = forward(c, b.proj, windows);
  windows = view(windows, {-1, w, w, width});
  x = view(windows, {-1, down, across, w, w, width});
  x = contiguous(permute(x, {0, 1, 3, 2, 4, 5}));
  x = view(x, {-1, down * w, across * w, width});
  x = contiguous(slice(slice(x, 1, 0, rows), 2, 0, cols));
  x = view(x, {n, rows * cols, width});
  return x;
}

/// modeling_florence2.py, Florence2VisionChannelAttention.forward: x[N, H W, C], whose channels attend to each other.
inline Value channel_attention(Context& c, const DavitStage& s, const DavitSubBlock& b, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, b.attention_scope);
  const std::int64_t n = x.size(0), tokens = x.size(1), width = x.size(2);
  const Value qkv = permute(reshape(forward(c, b.qkv, x), {n, tokens, 3, s.groups, width / s.groups}), {2, 0, 3, 4, 1});
  const std::vector<Value> parts = unbind(qkv, 0);
  Attended a = stacks::attend(c, {.q = parts[0], .k = parts[1], .v = parts[2], .fp32_softmax = false});
  x = permute(a.out, {0, 3, 2, 1});
  a.out.reset();
  x = reshape(x, {n, tokens, width});
  x = forward(c, b.proj, x);
  return x;
}

/// conv(x) + x of a map.
inline Value mixed(Context& c, const DavitHalf& h, const Value& x) {
  Value y;
  {
    InScope in(c.b, h.conv_scope);
    y = eager::conv2d(x, Value(c.b, h.conv_weight), Value(c.b, h.conv_bias), {.padding = 1, .depthwise = true});
  }
  return eager::add(std::move(y), x);
}

/// modeling_florence2.py, Florence2VisionSpatialBlock.forward and Florence2VisionChannelBlock.forward.
inline Value forward(Context& c, const DavitVision& g, const DavitStage& s, const DavitSubBlock& b, bool spatial,
                     Value arg) {
  using namespace eager;
  Value x = std::move(arg), residual;
  InScope in(c.b, b.scope);
  const std::int64_t n = x.size(0), width = x.size(1), rows = x.size(2), cols = x.size(3);
  const auto half = [&](const DavitHalf& h, auto&& run) {
    x = mixed(c, h, x);
    x = transpose(flatten(x, 2, 3), 1, 2);
    residual = x;
    x = forward(c, h.norm, x);
    run();
    Value branch = h.drops ? drop_path(c, h.drop_scope, x) : x;
    x = add(residual, std::move(branch));
    x = as_map(x, rows, cols);
  };
  half(b.mix, [&] {
    if (spatial) x = view(x, {n, rows, cols, width});
    x = spatial ? window_attention(c, g, s, b, x) : channel_attention(c, s, b, x);
  });
  half(b.feed, [&] {
    InScope f(c.b, b.ffn_scope);
    Value y = forward(c, b.fc1, x);
    {
      InScope a(c.b, b.activation_scope);
      y = activate(c, g.activation, y);
    }
    y = forward(c, b.fc2, y);
    x = std::move(y);
  });
  return x;
}

/// modeling_florence2.py, Florence2VisionBackbone.forward: pixels[N, 3, H, W] -> [N, C, h, w]. Its blocks are none that
/// transformers checkpoints.
inline Value forward(Context& c, const DavitTower& t, const Value& pixels) {
  InScope in(c.b, t.scope);
  Value x = pixels;
  for (std::size_t i = 0; i < t.stages.size(); ++i) {
    const DavitStage& s = t.config->stages[i];
    const DavitStageModules& m = t.stages[i];
    x = forward_stem(c, s, m, x);
    for (const DavitBlock& b : m.blocks) {
      InScope block(c.b, b.scope);
      const Value whole = x;  // the caller's
      x = forward(c, *t.config, s, b.spatial, true, x);
      x = forward(c, *t.config, s, b.channel, false, x);
    }
  }
  return x;
}

}  // namespace vlmest
