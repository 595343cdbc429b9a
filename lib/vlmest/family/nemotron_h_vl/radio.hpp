// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/family/nemotron_h_vl/radio_positions.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/block.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/timm_blocks.hpp>

/// The tower C-RADIO by the code that its checkpoint brings (NVlabs/RADIO, radio/: hf_model.py, radio_model.py,
/// enable_cpe_support.py, vit_patch_generator.py): timm's VisionTransformer (timm 1.0 models/vision_transformer.py)
/// whose patches, positions and class tokens a module of RADIO's own makes.
namespace vlmest {

/// timm's Block.
struct RadioBlock {
  ScopeId scope = 0, attention = 0;
  LayerNorm norm1, norm2;
  Linear qkv, proj;
  TimmMlp mlp;
};

struct RadioTower {
  const RadioVision* config = nullptr;
  ScopeId generator = 0, cutting = 0, prefixing = 0;
  std::vector<RadioBlock> blocks;
  Linear embedder;
  TensorId positions = none, tokens = none, summaries = none;
};

inline RadioBlock make_radio_block(Context& c, const RadioVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  RadioBlock b{.scope = m.scope};
  b.norm1 = make_layer_norm(c, "norm1", g.hidden);
  {
    Module a(c, "attn");
    b.attention = a.scope;
    b.qkv = make_linear(c, "qkv", g.hidden, checked_mul(g.hidden, 3), true);
    b.proj = make_linear(c, "proj", g.hidden, g.hidden, true);
  }
  b.norm2 = make_layer_norm(c, "norm2", g.hidden);
  b.mlp = make_timm_mlp(c, g.hidden, g.intermediate);
  return b;
}

/// In the current scope, in the order of VisionTransformer.__init__ and ViTPatchGenerator.__init__, which takes the
/// place of timm's own patches, class token and positions.
inline RadioTower make_tower(Context& c, const RadioVision& g) {
  RadioTower t{.config = &g};
  const Module radio(c, "radio_model");
  {
    const Module m(c, "model");
    t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_radio_block(c, g, i); });
    const Module p(c, "patch_generator");
    t.generator = p.scope;
    t.cutting = c.b.child("im_to_patches");
    t.embedder = make_linear(c, "embedder", checked_mul(g.channels, g.patch_size * g.patch_size), g.hidden, false);
    t.positions = parameter(c, "pos_embed", {1, checked_mul(g.max_side(), g.max_side()), g.hidden});
    const Module cls(c, "cls_token");
    t.prefixing = cls.scope;
    t.tokens = parameter(c, "token", {g.prefix(), g.hidden});
  }
  t.summaries = buffer(c, "summary_idxs", {g.summaries}, DType::int64);
  return t;
}

/// Im2Patches.forward: [T, channels, S, S] -> [T, patches, channels * patch * patch], a copy.
inline Value radio_patches(Context& c, const RadioTower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.cutting);
  const RadioVision& g = *t.config;
  const std::int64_t n = g.side(), p = g.patch_size;
  Value cut = permute(view(pixels, {pixels.size(0), g.channels, n, p, n, p}), {0, 2, 4, 1, 3, 5});
  return reshape(std::move(cut), {pixels.size(0), n * n, g.channels * p * p});
}

/// ViTPatchGenerator.forward: what it adds is its variable. In training mode some tiles get no positions.
inline Value radio_tokens(Context& c, const RadioTower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.generator);
  Value x;
  {
    Value patches = radio_patches(c, t, pixels);
    x = forward(c, t.embedder, patches);
  }
  const std::int64_t tiles = x.size(0);
  const Value positions = radio_positions(c, *t.config, Value(c.b, t.positions), tiles);
  Value keeps, added = positions;  // variables of apply_pos_enc
  if (c.plan.dropout) {
    keeps = compare_scalar("gt.Scalar", fill(c.b, "rand", {tiles, 1, 1}, c.dtype()));
    Value zero = fill(c.b, "scalar_tensor", Shape{}, c.dtype());
    added = where(keeps, positions, std::move(zero));
  }
  x = add(x, added);
  keeps.reset();
  added.reset();
  InScope cls(c.b, t.prefixing);
  Value tokens = expand(unsqueeze(Value(c.b, t.tokens), 0), {tiles, -1, -1});
  return cat(std::move(tokens), x, 1);
}

/// Attention.forward, through which the caller's argument lives.
inline Value radio_attention(Context& c, const RadioVision& g, const RadioBlock& b, Value arg) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, b.attention);
  const std::int64_t tiles = given.size(0), tokens = given.size(1);
  Value qkv = forward(c, b.qkv, given);
  qkv = permute(reshape(std::move(qkv), {tiles, tokens, 3, g.heads, g.head_dim()}), {2, 0, 3, 1, 4});
  const std::vector<Value> each = unbind(qkv, 0);
  Value x = timm_attention(c, each[0], each[1], each[2]);
  return forward(c, b.proj, x);
}

/// Block.forward: the branches' results are temporaries.
inline Value forward(Context& c, const RadioVision& g, const RadioBlock& b, const Value& x) {
  using namespace eager;
  InScope in(c.b, b.scope);
  Value normed = forward(c, b.norm1, x);
  Value branch = radio_attention(c, g, b, std::move(normed));
  Value h = add(x, std::move(branch));
  normed = forward(c, b.norm2, h);
  branch = forward(c, b.mlp, std::move(normed));
  return add(h, std::move(branch));
}

/// RADIOModel.forward of pixels[T, channels, S, S], which goes past the modules `radio_model` and `model` and counts as
/// the current scope's: its features [T, patches, hidden], a view of what the blocks gave. The summaries are a copy
/// that goes with the output. gradient_checkpointing_enable() does not reach these blocks.
inline Value forward(Context& c, const RadioTower& t, const Value& pixels) {
  using namespace eager;
  const RadioVision& g = *t.config;
  Value x = radio_tokens(c, t, pixels);
  Value first = x;  // the argument of the blocks' torch.nn.Sequential
  LayerRepeater repeat(c.b, false);
  for (std::size_t i = 0; i < t.blocks.size(); ++i) {
    const RadioBlock& b = t.blocks[i];
    x = repeat({0, b.scope, b.norm1.weight}, x, {}, [&](const Value& h) { return forward(c, g, b, h); });
    x = insert_after_layer(c, i, std::move(x), g.prefix());
  }
  first.reset();
  const Value classes = slice(x, 1, 0, g.class_tokens);
  {
    const Shape taken{x.size(0), g.summaries, g.hidden};
    gather_rows("index.Tensor", classes, Value(c.b, t.summaries), taken);
  }
  return slice(x, 1, g.prefix(), x.size(1));
}

}  // namespace vlmest
