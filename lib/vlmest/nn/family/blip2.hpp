// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/opt.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/qformer.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/blip2.hpp>

namespace vlmest {

/// BLIP-2 with OPT (transformers models/blip_2, Blip2ForConditionalGeneration): the Q-Former's queries, projected, are
/// scattered into the embeddings.
struct Blip2Family {
  Blip2Vision vision;
  QFormerConfig qformer;
  OptConfig language;
  std::int64_t query_tokens = 32;
  bool tied = true;
};

constexpr FamilyTraits traits(const Blip2Family&) { return {.features = FeatureCall::blip2, .plain_head = false}; }

/// The Q-Former and its queries are fp32 in a model loaded as fp16 (_keep_in_fp32_modules; modeling_utils.py applies it
/// to that type alone).
inline Plan qformer_plan(const Plan& plan) {
  Plan r = plan;
  if (r.dtype == DType::fp16) r.dtype = DType::fp32;
  return r;
}

struct Blip2Model {
  const Blip2Family* config = nullptr;
  ScopeId root = 0, language_scope = 0;
  Blip2Tower vision;
  TensorId query_tokens = none;
  QFormer qformer;
  Linear projection;
  OptDecoder language;
  Linear head;
};

/// In the order of Blip2ForConditionalGeneration.__init__. Throws Error for FlashAttention, which the class refuses.
inline Blip2Model make_model(Context& c, const Blip2Family& g) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("--attention", "BLIP-2's Q-Former has no FlashAttention path: transformers refuses it",
                "use sdpa or eager");
  const Plan plan = qformer_plan(c.plan);
  Context q{c.b, plan};
  Blip2Model r{.config = &g, .root = c.b.scope()};
  {
    Module v(c, "vision_model", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  r.query_tokens = parameter(q, "query_tokens", {1, g.query_tokens, g.qformer.hidden});
  {
    Module f(c, "qformer", Part::projector);
    r.qformer = make_qformer(q, g.qformer);
  }
  {
    Module p(c, "language_projection", Part::projector);
    r.projection = {.scope = p.scope};
    r.projection.weight = parameter(c, "weight", {g.language.hidden, g.qformer.hidden});
    r.projection.bias = parameter(c, "bias", {g.language.hidden});
  }
  Module l(c, "language_model", Part::language);
  r.language_scope = l.scope;
  {
    Module m(c, "model");
    Module d(c, "decoder");
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

struct Blip2Inputs {
  TextInputs text;
  Value pixels;
};

/// Throws Error without an image: the model's forward requires one.
inline Blip2Inputs make_inputs(Context& c, const Blip2Family& g, const Sequences& s) {
  if (s.images.empty()) throw Error("--images", "BLIP-2 does not run without an image", "give at least 1");
  Blip2Inputs r;
  const auto images = static_cast<std::int64_t>(s.images.size());
  const Shape shape{images, g.vision.channels, g.vision.image_size, g.vision.image_size};
  r.pixels = c.b.existing("pixel_values", Role::input, c.dtype(), shape);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// What get_image_features returns; the model's output carries all of it.
struct Blip2Features {
  TowerOutput vision;
  Value queries;   ///< the Q-Former's last hidden state
  Value features;  ///< projected: [N, queries, hidden of the language model]
};

/// modeling_blip_2.py, Blip2ForConditionalGeneration.get_image_features.
inline Blip2Features image_features(Context& c, const Blip2Model& m, const Value& pixels) {
  using namespace eager;
  Blip2Features r;
  r.vision = forward(c, m.vision, pixels);
  const Value& image = r.vision.last;
  Value mask = fill(c.b, "ones", {image.size(0), image.size(1)}, DType::int64);
  Value queries = expand(Value(c.b, m.query_tokens), {image.size(0), -1, -1});
  const Plan plan = qformer_plan(c.plan);
  Context q{c.b, plan};
  r.queries = forward(q, m.qformer, queries, image, mask);
  Value narrowed = to(r.queries, image.dtype());
  r.features = forward(c, m.projection, narrowed);
  return r;
}

/// The same in chunks, of which the features alone are kept.
inline Blip2Features batch_features(Context& c, const Blip2Model& m, const Value& pixels) {
  if (c.plan.vision_chunk == 0) return image_features(c, m, pixels);
  const auto images = static_cast<std::size_t>(pixels.size(0));
  const std::vector<Value> chunks = eager::split(pixels, chunk_lengths(images, c.plan.vision_chunk), 0);
  Blip2Features r;
  r.features = in_chunks(c, chunks, [&](const Value& v) { return image_features(c, m, v).features; });
  return r;
}

/// modeling_opt.py, OPTForCausalLM.forward.
inline Value forward(Context& c, const Blip2Model& m, Value embeds, const Value& mask, Logits logits, Cache& cache) {
  InScope in(c.b, m.language_scope);
  Value hidden = forward(c, m.language, std::move(embeds), mask, cache);
  return forward(c, m.head, kept_positions(hidden, logits));
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Blip2Model& m, const Blip2Inputs& in, const Sequences&, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.root);
  Blip2Features image = batch_features(c, m, in.pixels);
  Value embeds = embed(c, m.language, in.text.ids);
  Value mask = unsqueeze(compare_scalar("eq.Scalar", in.text.ids), -1);
  image.features = to(image.features, embeds.dtype());
  embeds = masked_scatter(embeds, mask, image.features);
  if (c.labels && loss_kind(c.plan) != Loss::unfused) {
    InScope language(c.b, m.language_scope);
    const Value hidden = forward(c, m.language, std::move(embeds), in.text.mask, cache);
    return head_output(c, m.head, hidden);
  }
  Value logits = forward(c, m, embeds, in.text.mask, c.labels ? Logits::all : c.plan.logits, cache);
  if (!c.labels) return logits;
  const Value labelled = slice(logits, 1, -c.labels->size(1), logits.size(1));
  return causal_lm_loss(c, labelled, *c.labels);
}

/// One token over the cache: generate() hands over to the language model alone.
inline Value decode(Context& c, const Blip2Model& m, const TextInputs& in, Cache& cache) {
  Value embeds = embed(c, m.language, in.ids);
  return forward(c, m, std::move(embeds), in.mask, Logits::last, cache);
}

}  // namespace vlmest
