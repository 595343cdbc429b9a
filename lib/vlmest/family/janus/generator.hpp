// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/linear.hpp>

/// What Janus makes pictures with (transformers models/janus, JanusVQVAE and the modules beside it): it is built with
/// every model, and text generation runs none of it. Parameters alone.
namespace vlmest {

struct JanusGenerator {
  std::int64_t embed = 8;
  std::int64_t embeddings = 16384;
  std::int64_t latent = 256;
  bool double_latent = false;
  std::int64_t in = 3, out = 3;
  std::int64_t base = 128;
  std::vector<std::int64_t> multipliers{1, 1, 2, 2, 4};
  std::int64_t res_blocks = 2;
  std::int64_t projection = 2048;
  std::int64_t layers = 2;
  std::int64_t image_token_embed = 2048;
};

namespace janus_generator {

inline void conv(Context& c, const char* name, std::int64_t in, std::int64_t out, std::int64_t side) {
  Module m(c, name);
  parameter(c, "weight", {out, in, side, side});
  parameter(c, "bias", {out});
}
inline void norm(Context& c, const char* name, std::int64_t width) {
  Module m(c, name);
  parameter(c, "weight", {width});
  parameter(c, "bias", {width});
}

/// JanusVQVAEResnetBlock.__init__.
inline void residual(Context& c, const char* name, std::int32_t index, std::int64_t in, std::int64_t out) {
  Module m(c, name, index);
  norm(c, "norm1", in);
  conv(c, "conv1", in, out, 3);
  norm(c, "norm2", out);
  conv(c, "conv2", out, out, 3);
  if (in != out) conv(c, "nin_shortcut", in, out, 1);
}
/// JanusVQVAEAttnBlock.__init__.
inline void attention(Context& c, const char* name, std::int32_t index, std::int64_t width) {
  Module m(c, name, index);
  norm(c, "norm", width);
  for (const char* part : {"q", "k", "v", "proj_out"}) conv(c, part, width, width, 1);
}
/// JanusVQVAEMidBlock.__init__.
inline void middle(Context& c, std::int64_t width) {
  Module m(c, "mid");
  residual(c, "block_1", none, width, width);
  attention(c, "attn_1", none, width);
  residual(c, "block_2", none, width, width);
}

/// The residual blocks of a level, each with attention behind it where `attends`; the channels that they end in.
inline std::int64_t level(Context& c, std::int64_t blocks, std::int64_t in, std::int64_t out, bool attends) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    residual(c, "block", static_cast<std::int32_t>(i), in, out);
    in = out;
    if (attends) attention(c, "attn", static_cast<std::int32_t>(i), in);
  }
  return in;
}

/// JanusVQVAEEncoder.__init__.
inline void encoder(Context& c, const JanusGenerator& g) {
  Module m(c, "encoder");
  conv(c, "conv_in", g.in, g.base, 3);
  const auto levels = static_cast<std::int32_t>(g.multipliers.size());
  std::int64_t width = g.base;
  for (std::int32_t i = 0; i < levels; ++i) {
    Module down(c, "down", i);
    const std::int64_t out = checked_mul(g.base, g.multipliers[static_cast<std::size_t>(i)]);
    width = level(c, g.res_blocks, width, out, i == levels - 1);
    if (i == levels - 1) continue;
    Module d(c, "downsample");
    conv(c, "conv", width, width, 3);
  }
  middle(c, width);
  norm(c, "norm_out", width);
  conv(c, "conv_out", width, checked_mul(g.latent, g.double_latent ? 2 : 1), 3);
}

/// JanusVQVAEDecoder.__init__: its levels run from the last to the first.
inline void decoder(Context& c, const JanusGenerator& g) {
  Module m(c, "decoder");
  const auto levels = static_cast<std::int32_t>(g.multipliers.size());
  std::int64_t width = checked_mul(g.base, g.multipliers.back());
  conv(c, "conv_in", g.latent, width, 3);
  middle(c, width);
  for (std::int32_t i = 0; i < levels; ++i) {
    const std::int32_t at = levels - 1 - i;
    Module up(c, "up", i);
    const std::int64_t out = checked_mul(g.base, g.multipliers[static_cast<std::size_t>(at)]);
    width = level(c, checked_add(g.res_blocks, 1), width, out, at == levels - 1);
    if (at == 0) continue;
    Module u(c, "upsample");
    conv(c, "conv", width, width, 3);
  }
  norm(c, "norm_out", width);
  conv(c, "conv_out", width, g.out, 3);
}

}  // namespace janus_generator

/// In the order of JanusVQVAE.__init__ and JanusModel.__init__.
inline void make_generator(Context& c, const JanusGenerator& g) {
  using namespace janus_generator;
  {
    Module m(c, "vqmodel", Part::vision);
    encoder(c, g);
    {
      Module q(c, "quantize"), e(c, "embedding");
      parameter(c, "weight", {g.embeddings, g.embed});
    }
    conv(c, "quant_conv", g.latent, g.embed, 1);
    conv(c, "post_quant_conv", g.embed, g.latent, 1);
    decoder(c, g);
  }
  {
    Module e(c, "generation_embeddings", Part::vision);
    parameter(c, "weight", {g.embeddings, g.embed});
  }
  {
    Module a(c, "generation_aligner", Part::vision);
    make_linear(c, "fc1", g.embed, g.projection, true);
    for (std::int32_t i = 0; i + 1 < g.layers; ++i)
      make_linear(c, "hidden_layers", g.projection, g.projection, true, i);
  }
  Module h(c, "generation_head", Part::vision);
  make_linear(c, "proj_out", g.image_token_embed, g.projection, true);
  make_linear(c, "vision_head", g.projection, g.embeddings, true);
}

}  // namespace vlmest
