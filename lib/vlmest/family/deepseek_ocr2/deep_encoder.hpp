// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/deepseek_ocr2/deep_encoder_parts.hpp>
#include <vlmest/nn/vision/clip.hpp>

namespace vlmest {

/// DeepSeek-OCR's vision model, DeepEncoder (Wei et al., arXiv:2510.18234, section 3.2; deepencoder.py of the
/// checkpoint deepseek-ai/DeepSeek-OCR): SAM's tower, whose map two convolutions halve twice, and CLIP's layers over
/// that map in the place of patches of their own. Of each position both states go on, side by side.
struct DeepEncoder {
  SamVision sam{.resamples = true};
  std::int64_t between = 512;  ///< channels of the first convolution behind SAM's neck; the second ends in CLIP's width
  ClipVision clip{.hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .patch_size = 14};
};

/// NoTPTransformerBlock: q, k and v in one linear.
struct DeepEncoderLayer {
  ScopeId scope = 0, attention_scope = 0;
  Linear qkv, out;
  Mlp mlp;
  LayerNorm norm1, norm2;
};

struct DeepEncoderTower {
  const DeepEncoder* config = nullptr;
  SamTower sam;
  ConvPair halvings;  ///< net_2 and net_3
  ScopeId clip_scope = 0, embeddings_scope = 0;
  TensorId class_embedding = none, position_ids = none;
  Embedding positions;
  std::vector<DeepEncoderLayer> layers;
  LayerNorm pre_norm;
};

inline DeepEncoderLayer make_encoder_layer(Context& c, const ClipVision& g, std::int32_t index) {
  Module m(c, "layers", index);
  DeepEncoderLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.qkv = make_linear(c, "qkv_proj", g.hidden, checked_mul(g.hidden, 3), true);
    l.out = make_linear(c, "out_proj", g.hidden, g.hidden, true);
  }
  l.mlp = make_named_mlp(c, {"fc1", "fc2"}, g.hidden, g.intermediate, Activation::quick_gelu);
  l.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  l.norm2 = make_layer_norm(c, "layer_norm2", g.hidden);
  return l;
}

/// sam_model, then vision_model (ImageEncoderViT.__init__, VitModel.__init__). CLIP's own patch convolution is made,
/// and loaded, but nothing runs it.
inline DeepEncoderTower make_tower(Context& c, const DeepEncoder& g) {
  DeepEncoderTower t{.config = &g};
  {
    Module s(c, "sam_model", Part::vision);
    t.sam = make_image_encoder(c, g.sam);
    t.halvings = make_halvings(c, "net_2", "net_3", g.sam.out, g.between, g.clip.hidden);
  }
  Module v(c, "vision_model", Part::vision);
  t.clip_scope = v.scope;
  const std::int64_t side = g.clip.image_size / g.clip.patch_size, places = checked_add(checked_mul(side, side), 1);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.class_embedding = parameter(c, "class_embedding", {g.clip.hidden});
    make_patch_conv(c, "patch_embedding", g.clip, false);
    t.positions = make_embedding(c, "position_embedding", places, g.clip.hidden);
    t.position_ids = buffer(c, "position_ids", {1, places}, DType::int64);
  }
  {
    Module e(c, "transformer");
    t.layers = make_layers(g.clip.layers, [&](std::int32_t i) { return make_encoder_layer(c, g.clip, i); });
  }
  t.pre_norm = make_layer_norm(c, "pre_layrnorm", g.clip.hidden);
  return t;
}

/// ImageEncoderViT.forward: pixels[N, 3, S, S] -> [N, CLIP's width, S / 64, S / 64].
inline Value sam_map(Context& c, const DeepEncoderTower& t, const Value& pixels) {
  const Value x = image_encoder(c, t.sam, pixels);
  InScope in(c.b, t.sam.scope);
  const Value x2 = forward(c, t.halvings.first, x);
  return forward(c, t.halvings.second, eager::clone(x2));
}

/// deepencoder.py, get_abs_pos: positions of a class token and of a map of side * side, resampled in fp32 where they
/// are others than the table's.
inline Value encoder_positions(Context& c, const DeepEncoderTower& t, std::int64_t side) {
  using namespace eager;
  Value table = forward(c, t.positions, Value(c.b, t.position_ids));
  const std::int64_t own = t.config->clip.image_size / t.config->clip.patch_size, channels = table.size(2);
  if (own == side) return table;
  const DType type = table.dtype();
  const Value rows = squeeze(table, 0);
  const Value cls = slice(rows, 0, 0, 1);
  Value old = slice(rows, 0, 1, rows.size(0));
  old = contiguous(permute(view(std::move(old), {1, own, own, channels}), {0, 3, 1, 2}));
  old = to(std::move(old), DType::fp32);
  Value x = to(upsample_bicubic2d_aa(old, side, side), type);
  x = reshape(permute(std::move(x), {0, 2, 3, 1}), {side * side, channels});
  return view(cat(cls, x, 0), {1, side * side + 1, channels});
}

/// NoTPAttention.forward, called past its module: torch's fused attention, whatever the run chooses for the language
/// model.
inline Value encoder_attention(Context& c, const DeepEncoderLayer& l, const Value& arg, std::int64_t heads) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = arg.size(0), tokens = arg.size(1), channels = arg.size(2);
  Value xqkv = forward(c, l.qkv, arg);
  xqkv = view(std::move(xqkv), {batch, tokens, 3, heads, channels / heads});
  const auto head = [&](std::int64_t i) { return permute(squeeze(slice(xqkv, 2, i, i + 1), 2), {0, 2, 1, 3}); };
  const Value q = head(0), k = head(1), v = head(2);
  Value out = scaled_dot_product_attention(q, k, v, {}, false);
  out = reshape(permute(std::move(out), {0, 2, 1, 3}), {batch, tokens, channels});
  return forward(c, l.out, out);
}

/// NoTPTransformerBlock.forward.
inline Value forward(Context& c, const DeepEncoderLayer& l, Value arg, std::int64_t heads) {
  using namespace eager;
  const Value x = std::move(arg);
  InScope in(c.b, l.scope);
  const Value residual = encoder_attention(c, l, forward(c, l.norm1, x), heads);
  const Value h = add(x, residual);
  return add(h, nested_mlp(c, l.mlp, forward(c, l.norm2, h)));
}

/// VitModel.forward over SAM's map in the place of patches: [N, channels, side, side] -> [N, 1 + side * side,
/// channels].
inline Value clip_states(Context& c, const DeepEncoderTower& t, const Value& map) {
  using namespace eager;
  InScope in(c.b, t.clip_scope);
  Value x;
  {
    InScope e(c.b, t.embeddings_scope);
    const Value patches = patch_sequence(map);
    const Value cls = expand(Value(c.b, t.class_embedding), {map.size(0), 1, -1});
    const Value all = cat(cls, patches, 1);
    x = add(all, encoder_positions(c, t, map.size(2)));
  }
  const Value hidden = forward(c, t.pre_norm, x);  // a variable of the function
  Value states = hidden;
  LayerRepeater repeat(c.b, false);
  for (const DeepEncoderLayer& l : t.layers)
    states = repeat({0, l.scope, l.qkv.weight}, states, {},
                    [&](const Value& h) { return forward(c, l, h, t.config->clip.heads); });
  return states;
}

}  // namespace vlmest
