// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <vlmest/nn/block_config.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// Blocks that a description adds to an assembled model. A family calls insert() where a point lies; without blocks it
/// hands its argument back.
namespace vlmest {

struct NormModule {
  std::variant<LayerNorm, RmsNorm> norm;
  std::int64_t width = 0;
};
struct LinearModule {
  Linear linear;
  std::int64_t in = 0;
};
struct MlpModule {
  Mlp mlp;
  std::int64_t width = 0;
};
struct AttentionModule {
  AttentionBlock config;
  Linear q, k, v, out;
};
using BlockModule =
    std::variant<SpectralFilterModule, SpectralCrop, LinearModule, MlpModule, NormModule, AttentionModule>;

struct PlacedBlock {
  BlockConfig config;
  ScopeId scope = 0;
  std::optional<NormModule> norm;
  BlockModule module;
};

/// The blocks of a model under construction, in the order in which they run.
struct Blocks {
  std::vector<PlacedBlock> list;
  mutable std::vector<bool> ran;
};

inline NormModule make_norm_module(Context& c, const char* name, const NormBlock& g) {
  if (g.kind == NormBlock::Kind::rms_norm) return {make_rms_norm(c, name, g.width), g.width};
  return {make_layer_norm(c, name, g.width), g.width};
}
inline BlockModule make_module(Context&, const SpectralCrop& g, int) { return g; }
inline BlockModule make_module(Context& c, const SpectralFilter& g, int) { return make_module(c, g); }
inline BlockModule make_module(Context& c, const LinearBlock& g, int) {
  return LinearModule{make_linear(c, "linear", g.in, g.out, g.bias), g.in};
}
inline BlockModule make_module(Context& c, const MlpBlock& g, int) {
  Mlp m{.scope = c.b.scope(), .activation = g.activation};
  m.fc1 = make_linear(c, "fc1", g.width, g.inner, g.bias);
  m.activation_scope = c.b.child("act");
  m.fc2 = make_linear(c, "fc2", g.inner, g.width, g.bias);
  return MlpModule{m, g.width};
}
inline BlockModule make_module(Context& c, const NormBlock& g, int) { return make_norm_module(c, "norm", g); }
inline BlockModule make_module(Context& c, const AttentionBlock& g, int) {
  if (g.heads < 1 || g.width % g.heads != 0)
    throw Error("blocks", "the width of an attention block is not a multiple of its heads",
                "choose heads that divide width");
  AttentionModule m{.config = g};
  m.q = make_linear(c, "q_proj", g.width, g.width, g.bias);
  m.k = make_linear(c, "k_proj", g.width, g.width, g.bias);
  m.v = make_linear(c, "v_proj", g.width, g.width, g.bias);
  m.out = make_linear(c, "out_proj", g.width, g.width, g.bias);
  return m;
}

/// Declares the blocks' parameters, as a module list that is added to the assembled model. Inside the tower they count
/// with it, elsewhere with the projector.
inline Blocks make_blocks(Context& c, const std::vector<BlockConfig>& configs) {
  Blocks r;
  InScope root(c.b, 0);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const BlockConfig& g = configs[i];
    const Part part = g.after.at == BlockPoint::At::tower_layer ? Part::vision : Part::projector;
    InScope in(c.b, c.b.child("blocks", static_cast<std::int32_t>(i), part));
    PlacedBlock b{.config = g, .scope = c.b.scope()};
    if (g.norm) b.norm = make_norm_module(c, "pre_norm", *g.norm);
    b.module = std::visit([&](const auto& op) { return make_module(c, op, 0); }, g.op);
    r.list.push_back(std::move(b));
  }
  r.ran.assign(configs.size(), false);
  return r;
}

inline void check_width(const char* what, const Value& x, std::int64_t width) {
  if (x.size(-1) != width)
    throw Error(what, "made for " + std::to_string(width) + " channels, but the features are " + to_string(x.shape()),
                "take the width at that point");
}

inline Value forward(Context& c, const NormModule& m, Value x) {
  check_width("norm block", x, m.width);
  return std::visit([&](const auto& n) { return forward(c, n, std::move(x)); }, m.norm);
}
inline Value forward(Context& c, const LinearModule& m, Value x) {
  check_width("linear block", x, m.in);
  return forward(c, m.linear, std::move(x));
}
inline Value forward(Context& c, const MlpModule& m, Value x) {
  check_width("mlp block", x, m.width);
  return forward(c, m.mlp, std::move(x));
}
inline Value forward(Context& c, const AttentionModule& m, Value arg) {
  using namespace eager;
  check_width("attention block", arg, m.config.width);
  if (arg.shape().rank() != 3)
    throw Error("attention block", "this tower packs all images into one row of tokens",
                "use it behind a tower with one row per tile");
  Value x = std::move(arg);
  const std::int64_t batch = x.size(0), tokens = x.size(1), head_dim = m.config.width / m.config.heads;
  auto heads = [&](const Linear& l) {
    Value y = forward(c, l, x);
    return transpose(view(std::move(y), {batch, tokens, m.config.heads, head_dim}), 1, 2);
  };
  Value q = heads(m.q);
  Value k = heads(m.k);
  Value v = heads(m.v);
  Attended a = stacks::attend(c, {q, k, v, {}, false});
  a.out = reshape(std::move(a.out), {batch, tokens, -1});
  return forward(c, m.out, a.out);
}

inline Value forward(Context& c, const PlacedBlock& b, const Value& x) {
  InScope in(c.b, b.scope);
  Value y = b.norm ? forward(c, *b.norm, x) : x;
  y = std::visit([&](const auto& m) { return forward(c, m, y); }, b.module);
  if (!b.config.residual) return y;
  if (!(y.shape() == x.shape()))
    throw Error("blocks", "a residual block turned " + to_string(x.shape()) + " into " + to_string(y.shape()),
                "leave residual out where a block changes the shape");
  return eager::add(x, y);
}

/// Runs the blocks of a point on x[tiles, tokens, channels]. `leading` tokens at the front (a class token) are no part
/// of the grid: spectral blocks let them pass.
inline Value insert(Context& c, BlockPoint at, Value arg, std::int64_t leading = 0) {
  if (!c.blocks) return arg;
  Value x = std::move(arg);
  for (std::size_t i = 0; i < c.blocks->list.size(); ++i) {
    const PlacedBlock& b = c.blocks->list[i];
    if (!(b.config.after == at)) continue;
    c.blocks->ran[i] = true;
    const bool spectral =
        std::holds_alternative<SpectralFilterModule>(b.module) || std::holds_alternative<SpectralCrop>(b.module);
    if (!spectral || leading == 0) {
      x = forward(c, b, x);
      continue;
    }
    Value first = eager::slice(x, 1, 0, leading);
    Value grid = forward(c, b, eager::slice(x, 1, leading, x.size(1)));
    x = eager::cat(std::move(first), std::move(grid), 1);
  }
  return x;
}
inline Value insert_after_layer(Context& c, std::size_t layer, Value x, std::int64_t leading) {
  return insert(c, {BlockPoint::At::tower_layer, static_cast<std::int64_t>(layer)}, std::move(x), leading);
}
inline Value insert_after_tower(Context& c, Value x) { return insert(c, {BlockPoint::At::tower}, std::move(x)); }
/// `tokens` features must be left for the language model, where they are not put together afterwards. Throws Error
/// where a crop inside the tower comes behind the layer whose features are used.
inline Value insert_after_projector(Context& c, Value arg, std::int64_t tokens = 0) {
  Value x = insert(c, {BlockPoint::At::projector}, std::move(arg));
  if (c.blocks && tokens > 0 && checked_mul(x.size(0), x.size(1)) != tokens)
    throw Error(
        "blocks",
        std::to_string(checked_mul(x.size(0), x.size(1))) + " features for " + std::to_string(tokens) + " image tokens",
        "a crop inside the tower stands before the layer whose features are used (vision_feature_layer)");
  return x;
}

/// Throws Error for a block that no point ran: a layer that the tower lacks, or a family without such a point.
inline void check_all_ran(const Blocks& b) {
  for (std::size_t i = 0; i < b.ran.size(); ++i)
    if (!b.ran[i])
      throw Error("blocks[" + std::to_string(i) + "]", "this model has no such point",
                  "layers count from 0; packed towers (Pixtral, Qwen, GLM) and Q-Formers take no blocks yet");
}

}  // namespace vlmest
