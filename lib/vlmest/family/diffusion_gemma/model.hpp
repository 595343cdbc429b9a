// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/diffusion_gemma/layers.hpp>
#include <vlmest/nn/family/encoder_decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/projector/gemma4.hpp>
#include <vlmest/nn/vision/gemma4.hpp>

namespace vlmest {

/// DiffusionGemma (transformers 5.17 models/diffusion_gemma): Gemma 4 with experts as an encoder that reads pictures
/// and text into the cache, and the same layers once more as a decoder that denoises a canvas of tokens over it.
struct DiffusionGemmaFamily {
  Gemma4Vision vision;
  Gemma4TextConfig language;
  bool tied = true;           ///< the decoder's weights are the encoder's, and the head's are the embeddings
  std::int64_t canvas = 256;  ///< tokens of a canvas
};

/// DiffusionGemmaSelfConditioning: a gated MLP over what the last step thought of each token.
struct SelfConditioning {
  ScopeId scope = 0;
  RmsNorm pre_norm, post_norm;
  GatedMlp mlp;  ///< its modules stand in the same scope
};

/// In the order of DiffusionGemmaSelfConditioning.__init__.
inline SelfConditioning make_self_conditioning(Context& c, const Gemma4TextConfig& g) {
  Module m(c, "self_conditioning");
  SelfConditioning r{.scope = m.scope};
  r.pre_norm = make_rms_norm(c, "pre_norm", g.hidden, RmsNorm::Kind::gemma4);
  r.post_norm = make_weightless_norm(c, "post_norm");
  r.mlp = {.scope = m.scope, .activation = g.activation};
  r.mlp.gate = make_linear(c, "gate_proj", g.hidden, g.intermediate, false);
  r.mlp.up = make_linear(c, "up_proj", g.hidden, g.intermediate, false);
  r.mlp.down = make_linear(c, "down_proj", g.intermediate, g.hidden, false);
  r.mlp.activation_scope = c.b.child("act_fn");
  return r;
}

/// DiffusionGemmaSelfConditioning.forward.
inline Value forward(Context& c, const SelfConditioning& m, const Value& embeds, const Value& signal) {
  InScope in(c.b, m.scope);
  const Value normed = forward(c, m.pre_norm, signal);
  const Value update = forward(c, m.mlp, normed);
  const Value combined = eager::add(embeds, update);
  return forward(c, m.post_norm, combined);
}

struct DiffusionGemmaModel {
  const DiffusionGemmaFamily* config = nullptr;
  ScopeId root = 0, model = 0, encoder_scope = 0;
  DiffusionStack encoder, decoder;
  Gemma4Tower vision;
  Gemma4Embedder embed_vision;
  SelfConditioning self_conditioning;
  Linear head;
};

/// Both stacks, each layer of the encoder with the decoder's beside it: they share weights, and a layer's lie together.
inline void make_stacks(Context& c, const DiffusionGemmaFamily& f, DiffusionGemmaModel& r) {
  const Gemma4TextConfig& g = f.language;
  const auto in_encoder = [&](auto make) {
    InScope in(c.b, r.encoder.scope);
    return make();
  };
  const auto in_decoder = [&](auto make) {
    InScope in(c.b, r.decoder.scope);
    return make();
  };
  const auto embedding = [&](DiffusionStack& s) {
    s.embed_tokens = make_scaled_embedding(c, "embed_tokens", g.vocab, g.hidden, s.embed_scale);
    return 0;
  };
  in_encoder([&] { return embedding(r.encoder); });
  in_decoder([&] {
    if (!f.tied) return embedding(r.decoder);
    Module m(c, "embed_tokens");
    r.decoder.embed_tokens = {.scope = m.scope, .weight = r.encoder.embed_tokens.weight};
    r.decoder.embed_scale = buffer(c, "embed_scale", Shape{}, c.dtype());
    return 0;
  });
  for (std::int32_t i = 0; i < g.layers; ++i) {
    r.encoder.layers.push_back(in_encoder([&] { return make_diffusion_layer(c, g, i); }));
    r.decoder.layers.push_back(in_decoder(
        [&] { return f.tied ? make_tied_layer(c, r.encoder.layers.back(), i) : make_diffusion_layer(c, g, i); }));
  }
  const auto norm = [&] { return make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma4); };
  r.encoder.norm = in_encoder(norm);
  r.decoder.norm = in_decoder([&] { return f.tied ? tied_norm(c, "norm", r.encoder.norm) : norm(); });
  for (DiffusionStack* s : {&r.encoder, &r.decoder}) {
    InScope in(c.b, s->scope);
    make_diffusion_ropes(c, g, *s);
  }
}

/// DiffusionGemmaForBlockDiffusion, its modules as from_pretrained loads them: shared weights once.
inline DiffusionGemmaModel make_model(Context& c, const DiffusionGemmaFamily& f) {
  check_wide_heads(c);
  refuse_for_encoder_decoder(c, "DiffusionGemma");
  DiffusionGemmaModel r{.config = &f, .root = c.b.scope()};
  {
    Module m(c, "model");
    r.model = m.scope;
    r.encoder_scope = c.b.child("encoder");
    {
      InScope e(c.b, r.encoder_scope);
      r.encoder.scope = c.b.child("language_model", none, Part::language);
    }
    r.decoder.scope = c.b.child("decoder", none, Part::language);
    make_stacks(c, f, r);
    {
      InScope e(c.b, r.encoder_scope);
      {
        Module v(c, "vision_tower", Part::vision);
        r.vision = make_tower(c, f.vision);
      }
      Module p(c, "embed_vision", Part::projector);
      r.embed_vision = make_gemma4_embedder(c, f.vision.hidden, f.language.hidden);
    }
    InScope d(c.b, r.decoder.scope);
    r.self_conditioning = make_self_conditioning(c, f.language);
  }
  Module h(c, "lm_head", Part::language);
  c.b.graph.head = h.scope;
  r.head = f.tied ? Linear{.scope = h.scope, .weight = r.encoder.embed_tokens.weight}
                  : declare_linear(c, f.language.hidden, f.language.vocab, false, StoredModule::head);
  return r;
}

}  // namespace vlmest
