// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/qformer.hpp>
#include <vlmest/nn/vision/blip2.hpp>

/// What BLIP-2 models have in common, whatever their language model is (transformers models/blip_2,
/// Blip2ForConditionalGeneration): the tower, the Q-Former, and how its queries come among the embeddings.
namespace vlmest {

/// pixels -> the outputs of tower and Q-Former: modeling_blip_2.py, Blip2ForConditionalGeneration.forward and
/// generate(). The line's result lacks the tower's states.
inline std::string blip2_line(const std::string&, std::int64_t n) {
  return "from transformers.models.blip_2.modeling_blip_2 import BaseModelOutputWithVisionQformerOutputs; " +
         feature_calls::wrapped("model.get_image_features", "pixel_values",
                                "BaseModelOutputWithVisionQformerOutputs(pooler_output=torch.cat([f(pixel_values=p, "
                                "**k).pooler_output for p in " +
                                    feature_calls::split("pixel_values", n) + "]))");
}

/// The Q-Former and its queries are fp32 in a model loaded as fp16 (_keep_in_fp32_modules; modeling_utils.py applies it
/// to that type alone).
inline Plan qformer_plan(const Plan& plan) {
  Plan r = plan;
  if (r.dtype == DType::fp16) r.dtype = DType::fp32;
  return r;
}

/// Everything in front of the language model.
struct Blip2Eyes {
  Blip2Tower vision;
  TensorId query_tokens = none;
  QFormer qformer;
  Linear projection;
};

/// In the order of Blip2ForConditionalGeneration.__init__, of a family's config; `width` is the language model's.
/// Throws Error for FlashAttention, which the class refuses.
template <class Family>
Blip2Eyes make_blip2_eyes(Context& c, const Family& g, std::int64_t width) {
  if (c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "BLIP-2's Q-Former has no FlashAttention path: transformers refuses it",
                "use sdpa or eager");
  const Plan plan = qformer_plan(c.plan);
  Context q{c.b, plan, c.runtime};
  Blip2Eyes r;
  {
    Module v(c, "vision_model", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  r.query_tokens = parameter(q, "query_tokens", {1, g.query_tokens, g.qformer.hidden});
  {
    Module f(c, "qformer", Part::projector);
    r.qformer = make_qformer(q, g.qformer);
  }
  Module p(c, "language_projection", Part::projector);
  r.projection = {.scope = p.scope};
  r.projection.weight = parameter(c, "weight", {width, g.qformer.hidden});
  r.projection.bias = parameter(c, "bias", {width});
  return r;
}

/// Throws Error without an image: the model's forward requires one.
template <class Family>
Value make_blip2_pixels(Context& c, const Family& g, const Sequences& s) {
  if (s.images.empty()) throw Error("plan.images", "BLIP-2 does not run without an image", "give at least 1");
  const auto images = static_cast<std::int64_t>(s.images.size());
  const Shape shape{images, g.vision.channels, g.vision.image_size, g.vision.image_size};
  return c.b.existing("pixel_values", Role::input, c.dtype(), shape);
}

/// What get_image_features returns; the model's output carries all of it.
struct Blip2Features {
  TowerOutput vision;
  Value queries;   ///< the Q-Former's last hidden state
  Value features;  ///< projected: [N, queries, hidden of the language model]
};

/// modeling_blip_2.py, Blip2ForConditionalGeneration.get_image_features.
inline Blip2Features image_features(Context& c, const Blip2Eyes& m, const Value& pixels) {
  using namespace eager;
  Blip2Features r;
  r.vision = forward(c, m.vision, pixels);
  const Value& image = r.vision.last;
  Value mask = fill(c.b, "ones", {image.size(0), image.size(1)}, DType::int64);
  Value queries = expand(Value(c.b, m.query_tokens), {image.size(0), -1, -1});
  const Plan plan = qformer_plan(c.plan);
  Context q{c.b, plan, c.runtime};
  r.queries = forward(q, m.qformer, queries, image, mask);
  Value narrowed = to(r.queries, image.dtype());
  r.features = forward(c, m.projection, narrowed);
  return r;
}

/// The same in chunks, of which the features alone are kept.
inline Blip2Features batch_features(Context& c, const Blip2Eyes& m, const Value& pixels) {
  if (c.plan.vision_chunk == 0) return image_features(c, m, pixels);
  const auto images = static_cast<std::size_t>(pixels.size(0));
  const std::vector<Value> chunks = eager::split(pixels, chunk_lengths(images, c.plan.vision_chunk), 0);
  Blip2Features r;
  r.features = in_chunks(c, chunks, [&](const Value& v) { return image_features(c, m, v).features; });
  return r;
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward up to the language model: the embeddings, and variables of
/// the function that live as long.
struct Blip2Embeds {
  Blip2Features image;
  Value mask;
  Value embeds;
};
inline Blip2Embeds embed_images(Context& c, const Blip2Eyes& m, const Value& pixels, const Value& ids,
                                const Embedding& table) {
  using namespace eager;
  Blip2Embeds r;
  r.image = batch_features(c, m, pixels);
  r.embeds = input_embedding(c, forward(c, table, ids));
  r.mask = unsqueeze(compare_scalar("eq.Scalar", ids), -1);
  r.image.features = to(r.image.features, r.embeds.dtype());
  r.embeds = masked_scatter(r.embeds, r.mask, r.image.features);
  return r;
}

}  // namespace vlmest
