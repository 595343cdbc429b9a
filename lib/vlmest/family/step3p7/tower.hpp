// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/conv.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>

namespace vlmest {

/// Step-3.7's vision tower (transformers 5.17 models/step3p7, Step3p7VisionModel): a table of positions resampled to
/// the view, layers whose queries and keys turn by row and column and whose branches are scaled, and two convolutions
/// that halve the map and double the channels each. Defaults: Step3p7VisionConfig.
struct Step3p7Vision {
  std::int64_t hidden = 1536;
  std::int64_t intermediate = 8960;  ///< hidden_size times mlp_ratio
  std::int64_t layers = 47;
  std::int64_t heads = 16;
  std::int64_t image_size = 728;  ///< side of the table of positions, in pixels
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  Activation activation = Activation::quick_gelu;
  bool attention_dropout = false;  ///< in training mode

  std::int64_t side() const { return image_size / patch_size; }
  std::int64_t head_dim() const { return hidden / heads; }
  std::int64_t features() const { return checked_mul(hidden, 4); }  ///< channels behind the convolutions
};

struct Step3p7VisionLayer {
  ScopeId scope = 0;
  Projections attention;
  Mlp mlp;
  LayerNorm norm_before, norm_after;
  TensorId attention_scale = none, mlp_scale = none;  ///< lambda_1 and lambda_2, [hidden]
};
inline TensorId first_parameter(const Step3p7VisionLayer& l) { return l.attention.first(); }

struct Step3p7Tower {
  const Step3p7Vision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  LayerNorm pre_norm;
  AxialRope rope;
  std::vector<Step3p7VisionLayer> layers;
  ConvPair halvings;
};

/// In the order of Step3p7VisionEncoderLayer.__init__.
inline Step3p7VisionLayer make_step_vision_layer(Context& c, const Step3p7Vision& g, std::int32_t index) {
  Module m(c, "layers", index);
  Step3p7VisionLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(
        c, {.hidden = g.hidden, .qkv_bias = true, .out_bias = true, .keys_first = true, .out = "out_proj"});
  }
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  l.norm_before = make_layer_norm(c, "layernorm_before", g.hidden);
  l.norm_after = make_layer_norm(c, "layernorm_after", g.hidden);
  l.attention_scale = parameter(c, "lambda_1", {g.hidden});
  l.mlp_scale = parameter(c, "lambda_2", {g.hidden});
  return l;
}

/// In the order of Step3p7VisionModel.__init__.
inline Step3p7Tower make_tower(Context& c, const Step3p7Vision& g) {
  Step3p7Tower t{.config = &g, .scope = c.b.scope()};
  {
    const std::int64_t places = checked_mul(g.side(), g.side());
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, false);
    t.positions = make_embedding(c, "position_embedding", places, g.hidden);
    buffer(c, "position_ids", {1, places}, DType::int64);
  }
  t.pre_norm = make_layer_norm(c, "pre_layernorm", g.hidden);
  t.rope = make_axial_rope(c, "rotary_emb", g.head_dim());
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_step_vision_layer(c, g, i); });
  t.halvings = make_halvings(c, "downsampler1", "downsampler2", g.hidden, checked_mul(g.hidden, 2), g.features(), true);
  return t;
}

/// Step3p7VisionEmbeddings.interpolate_pos_encoding: the table as it is, or resampled, [1, rows * cols, hidden].
inline Value step_positions(Context& c, const Step3p7Tower& t, std::int64_t rows, std::int64_t cols) {
  using namespace eager;
  const std::int64_t side = t.config->side(), hidden = t.config->hidden;
  Value x = unsqueeze(Value(c.b, t.positions.weight), 0);
  if (rows == side && cols == side) return x;
  x = permute(reshape(x, {1, side, side, hidden}), {0, 3, 1, 2});
  x = upsample_bilinear2d(x, rows, cols);
  return view(permute(x, {0, 2, 3, 1}), {1, -1, hidden});
}

/// Step3p7VisionEmbeddings.forward: pixels[N, C, H, W] -> [N, patches, hidden].
inline Value step_embeddings(Context& c, const Step3p7Tower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const Value patches = forward(c, t.patches, pixels);
  const Value x = patch_sequence(patches);
  const std::int64_t side = t.config->patch_size;
  return add(x, step_positions(c, t, pixels.size(2) / side, pixels.size(3) / side));
}

/// Step3p7VisionRotaryEmbedding.forward: positions[patches, 2] -> fp32 cos, sin[patches, head_dim]; the frequencies of
/// both axes lie side by side already.
inline CosSin step_rotation(Context& c, const AxialRope& r, const Value& positions) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const Value expanded = to(unsqueeze(positions, -1), DType::fp32);
  const Value freqs = mul(expanded, Value(c.b, r.inv_freq));
  CosSin e;
  e.cos = mul_scalar(eager::cos(freqs));
  e.sin = mul_scalar(eager::sin(freqs));
  const auto twice = [](const Value& f) {
    const Value both = flatten(f, 1, 2);
    return cat(both, both, -1);
  };
  e.cos = twice(e.cos);
  e.sin = twice(e.sin);
  return e;
}

/// Step3p7VisionAttention.forward.
inline Attended step_vision_attention(Context& c, const Step3p7Vision& g, const Step3p7VisionLayer& l, const Value& x,
                                      const CosSin& positions) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {x.size(0), x.size(1), -1, g.head_dim()}); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  const Value v = transpose(heads(l.attention.v), 1, 2);
  apply_rope_fp32(c, q, k, positions);
  for (Value* y : {&q, &k}) *y = transpose(std::move(*y), 1, 2);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// Step3p7VisionEncoderLayer.forward: what goes into a sum is scaled by channel and stands first in it.
inline Value forward(Context& c, const Step3p7Vision& g, const Step3p7VisionLayer& l, Value arg,
                     const CosSin& positions) {
  const auto scaled = [&](TensorId by) { return [&c, by](Value& x) { x = eager::mul(Value(c.b, by), x); }; };
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.norm_before,
      [&](const Value& x) { return step_vision_attention(c, g, l, x, positions); }, l.norm_after,
      [&](const Value& x) { return forward(c, l.mlp, x); }, scaled(l.attention_scale), scaled(l.mlp_scale),
      [](const Value& residual, const Value& x) { return eager::add(x, residual); });
}

/// Step3p7VisionModel.forward: pixels[N, C, S, S] of one view -> [N, features, 4 * hidden].
inline Value forward(Context& c, const Step3p7Tower& t, const Value& pixels) {
  using namespace eager;
  const Step3p7Vision& g = *t.config;
  InScope in(c.b, t.scope);
  const Grid patches{pixels.size(2) / g.patch_size, pixels.size(3) / g.patch_size};
  Value x = step_embeddings(c, t, pixels);
  x = forward(c, t.pre_norm, x);
  const Value grid = from_host(c.b, {1, 3}, DType::int64);
  const std::array view_of{ImageLayout{.patches = patches}};
  const Value position_ids = vision_position_ids(c, grid, view_of, 1);
  const CosSin positions = [&] {
    const NoGrad off(c.b);
    return step_rotation(c, t.rope, position_ids);
  }();
  LayerRepeater repeat(c.b);
  for (const Step3p7VisionLayer& l : t.layers) {
    LayerRepeater::Layer place{0, l.scope, first_parameter(l)};
    // The stride that a view gives a single picture makes its map none with channels last, so that the convolution's
    // gradient is row-major, and the layers' have their channels apart.
    if (x.size(0) == 1) place.gradient_strides = {checked_mul(g.hidden, patches.count()), 1, patches.count()};
    x = repeat(place, x, {}, [&](const Value& h) { return forward(c, g, l, h, as_called(c, positions)); });
  }
  x = view(permute(x, {0, 2, 1}), {x.size(0), g.hidden, patches.rows, patches.cols});
  x = forward(c, t.halvings.first, x);
  x = forward(c, t.halvings.second, x);
  return permute(flatten(x, 2, 3), {0, 2, 1});
}

}  // namespace vlmest
