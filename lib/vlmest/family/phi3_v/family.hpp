// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/phi3_v/images.hpp>
#include <vlmest/family/phi3_v/text.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// Phi-3-vision and Phi-3.5-vision (microsoft/Phi-3.5-vision-instruct) by the code that comes with their checkpoints,
/// modeling_phi3_v.py, Phi3VForCausalLM, over transformers' CLIP.
struct Phi3VFamily {
  Phi3VVision vision;
  Phi3VText language;
  bool tied = false;
};

inline FamilyTraits traits(const Phi3VFamily&) {
  return {.features = FeatureCall{},
          .plain_head = false,
          .frames = 1,
          .all_logits = true,
          .note =
              "the code of Phi-3.5-vision's checkpoint; its language model writes attention out and its tower runs "
              "SDPA whatever plan.attention says, and it makes the logits of every position whatever plan.logits says"};
}

struct Phi3VModel {
  const Phi3VFamily* config = nullptr;
  ScopeId model = 0;
  Phi3VDecoder language;
  Phi3VImages images;
  Linear head;
};

/// In the order of Phi3VModel.__init__ and Phi3VForCausalLM.__init__.
inline Phi3VModel make_model(Context& c, const Phi3VFamily& g) {
  Phi3VModel r{.config = &g};
  const Phi3VText& t = g.language;
  {
    Module m(c, "model", Part::language);
    r.model = m.scope;
    r.language.config = &t;
    r.language.scope = m.scope;
    r.language.embed_tokens = make_embedding(c, "embed_tokens", t.vocab, t.hidden);
    r.images = make_phi3v_images(c, g.vision, t.hidden);
    r.language.layers = make_layers(t.layers, [&](std::int32_t i) { return make_phi3v_layer(c, t, i); });
    r.language.norm = make_rms_norm(c, "norm", t.hidden);
  }
  r.head = make_head(c, t.hidden, t.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

struct Phi3VInputs {
  TextInputs text;
  Value pixels, sizes;  ///< fp32[pictures, num_crops + 1, 3, 336, 336], int64[pictures, 2]
};

/// What was not compared with a run of its code.
inline void check_phi3v_runs(const Context& c) {
  const Plan& p = c.plan;
  if (p.attention == AttentionKind::flash)
    throw Error("plan.attention", "Phi-3-vision's own calls of FlashAttention-2 are not modelled",
                "give plan.attention=eager, which its code calls the way without that package");
  if (p.amp)
    throw Error("plan.amp", "Phi-3-vision under autocast is not modelled", "give plan.dtype=bf16 without plan.amp");
  if (p.param_dtype.value_or(p.dtype) != p.dtype)
    throw Error("plan.param_dtype", "Phi-3-vision's layers gathered in another type were not compared with a run",
                "leave it out");
  if (c.quantization || p.weights.value_or(p.dtype) != p.dtype)
    throw Error("plan.weights", "Phi-3-vision's quantised weights were not compared with a run", "leave it out");
  if (c.sharding)
    throw Error("plan.parallel", "Phi-3-vision's layers divided among GPUs are not modelled", "leave it out");
  if (p.vision_chunk > 0)
    throw Error("plan.vision_chunk", "Phi-3-vision's code calls its tower once, for the crops of all pictures",
                "leave it out");
  if (c.padded)
    throw Error("images", "sequences of several lengths were not compared with Phi-3-vision's own code",
                "give every sequence pictures of the same sizes");
}

inline Phi3VInputs make_inputs(Context& c, const Phi3VFamily& g, const Sequences& s) {
  check_phi3v_runs(c);
  Phi3VInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (s.images.empty()) return r;
  const auto n = static_cast<std::int64_t>(s.images.size());
  const ClipVision& t = g.vision.tower;
  // The processor's floats, which no caller casts.
  r.pixels = c.b.existing("pixel_values", Role::input, DType::fp32,
                          {n, s.images.front().tiles, t.channels, t.image_size, t.image_size});
  r.sizes = c.b.existing("image_sizes", Role::input, DType::int64, {n, 2});
  return r;
}

/// Phi3VModel.forward: token ids and pictures -> normed hidden states. `pictures`: whether they are handed over, which
/// generate() does in every step; those behind the first one hold no place for them.
inline Value phi3v_hidden(Context& c, const Phi3VModel& m, const TextInputs& text, bool pictures, const Value& pixels,
                          const Value& sizes, const std::vector<ImageLayout>& layouts, Cache& cache) {
  using namespace eager;
  InScope in(c.b, m.model);
  const std::int64_t tokens = text.ids.size(1);
  const Value positions = unsqueeze(fill(c.b, "arange.start", {tokens}, DType::int64), 0);
  const auto look_up = [&](const Value& ids) { return embed(c, m.language, ids); };
  const Value embeds =
      pictures ? phi3v_embeddings(c, m.images, text.ids, pixels, sizes, layouts, look_up) : look_up(text.ids);
  return forward(c, m.language, embeds, text.mask, positions, cache);
}

/// Phi3VForCausalLM.forward over a fresh cache.
inline Value prefill(Context& c, const Phi3VModel& m, const Phi3VInputs& in, const Sequences& s, Cache& cache) {
  const bool pictures = static_cast<bool>(in.pixels);
  if (pictures) cache.held.push_back(in.pixels);  // handed over in every step
  const Value hidden = phi3v_hidden(c, m, in.text, pictures, in.pixels, in.sizes, s.images, cache);
  Value logits = forward(c, m.head, hidden);
  logits = eager::to(logits, DType::fp32);
  return c.labels ? shifted_loss(logits, *c.labels) : logits;
}

/// One token over the cache.
inline Value decode(Context& c, const Phi3VModel& m, const TextInputs& in, Cache& cache) {
  const Value hidden = phi3v_hidden(c, m, in, !cache.held.empty(), {}, {}, {}, cache);
  Value logits = forward(c, m.head, hidden);
  return eager::to(logits, DType::fp32);
}

}  // namespace vlmest
