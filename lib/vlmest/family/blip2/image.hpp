// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/qformer.hpp>
#include <vlmest/nn/vision/blip2.hpp>

/// What BLIP-2 and InstructBLIP models have in common, whatever their language model is (transformers models/blip_2,
/// Blip2ForConditionalGeneration; models/instructblip, InstructBlipForConditionalGeneration; models/instructblipvideo,
/// InstructBlipVideoForConditionalGeneration): the tower, the Q-Former, and how its queries come among the embeddings.
/// Their configs have members `vision`, `qformer`, `language`, `query_tokens` and `videos`.
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
/// The same of InstructBlipForConditionalGeneration: each picture's instruction goes with it.
inline std::string instruct_blip_line(const std::string&, std::int64_t n) {
  using feature_calls::split;
  return "from transformers.models.instructblip.modeling_instructblip import "
         "BaseModelOutputWithVisionQformerOutputs; " +
         feature_calls::wrapped(
             "model.get_image_features", "pixel_values, qformer_input_ids, qformer_attention_mask",
             "BaseModelOutputWithVisionQformerOutputs(pooler_output=torch.cat([f(pixel_values=p, qformer_input_ids=i, "
             "qformer_attention_mask=m, **k).pooler_output for p, i, m in zip(" +
                 split("pixel_values", n) + ", " + split("qformer_input_ids", n) + ", " +
                 split("qformer_attention_mask", n) + ")]))");
}

/// What a family of theirs says of itself, whatever its language model is. Frames of videos are one call of the tower.
template <class Family>
constexpr FamilyTraits blip2_traits(const Family& g) {
  FamilyTraits t{.features = FeatureCall{blip2_line}, .plain_head = false};
  if (!g.qformer.instructed) return t;
  t.features = FeatureCall{instruct_blip_line};
  t.instruction = g.qformer.positions;
  if (g.videos) {
    t.features = feature_calls::no_images;
    t.videos = VideoPixels::own;
  }
  return t;
}

/// Queries are fp32 in a model loaded as fp16, and of BLIP-2 all of the Q-Former (_keep_in_fp32_modules;
/// modeling_utils.py applies it to that type alone).
inline Plan kept_in_fp32(const Plan& plan) {
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
/// Throws Error for FlashAttention, which BLIP-2's class refuses.
template <class Family>
Blip2Eyes make_blip2_eyes(Context& c, const Family& g, std::int64_t width) {
  if (!g.qformer.instructed && c.stack().flash_attention_2 && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "BLIP-2's Q-Former has no FlashAttention path: transformers refuses it",
                "use sdpa or eager");
  const Plan plan = kept_in_fp32(c.plan);
  Context q{c.b, plan, c.runtime};
  Blip2Eyes r;
  {
    Module v(c, "vision_model", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  r.query_tokens = parameter(q, "query_tokens", {1, g.query_tokens, g.qformer.hidden});
  {
    Module f(c, "qformer", Part::projector);
    r.qformer = make_qformer(g.qformer.instructed ? c : q, g.qformer);
  }
  Module p(c, "language_projection", Part::projector);
  r.projection = {.scope = p.scope};
  r.projection.weight = parameter(c, "weight", {width, g.qformer.hidden});
  r.projection.bias = parameter(c, "bias", {width});
  return r;
}

/// What the Q-Former's features are made of.
struct Blip2Images {
  Value pixels;            ///< [N, 3, side, side]; of videos [N, frames, 3, side, side]
  Value instruction;       ///< qformer_input_ids int64[N, T], of an instructed Q-Former
  Value instruction_mask;  ///< qformer_attention_mask, of the same shape
};

/// Throws Error without an image, which the models' forward requires, and for an instructed Q-Former unless each
/// sequence has one: processing_instructblip.py writes the placeholders of one, and tokenises one instruction for it.
template <class Family>
Blip2Images make_blip2_images(Context& c, const Family& g, const Sequences& s) {
  const Blip2Vision& v = g.vision;
  const auto images = static_cast<std::int64_t>(s.images.size());
  const auto videos = static_cast<std::int64_t>(s.videos.size());
  const char* const name = "pixel_values";
  Blip2Images r;
  if (g.videos) {
    if (videos == 0)
      throw Error("plan.video", "InstructBLIP-Video does not run without a video", "give plan.video.frames=4, say");
    r.pixels =
        c.b.existing(name, Role::input, c.dtype(), {videos, s.videos[0].tiles, v.channels, v.image_size, v.image_size});
  } else {
    if (images == 0)
      throw Error("plan.images",
                  std::string(g.qformer.instructed ? "InstructBLIP" : "BLIP-2") + " does not run without an image",
                  "give at least 1");
    if (g.qformer.instructed && images != s.batch)
      throw Error("plan.images", "InstructBLIP reads one instruction with each image, and a prompt has one",
                  "give plan.images=1");
    r.pixels = c.b.existing(name, Role::input, c.dtype(), {images, v.channels, v.image_size, v.image_size});
  }
  if (!g.qformer.instructed) return r;
  const Shape tokens{s.batch, s.instruction};
  r.instruction = c.b.existing("qformer_input_ids", Role::input, DType::int64, tokens);
  r.instruction_mask = c.b.existing("qformer_attention_mask", Role::input, DType::int64, tokens);
  return r;
}

/// What get_image_features returns; the model's output carries all of it.
struct Blip2Features {
  TowerOutput vision;
  Value queries;   ///< the Q-Former's last hidden state
  Value features;  ///< projected: [N, queries, hidden of the language model], those of a video's frames in a row
};

/// modeling_blip_2.py, Blip2ForConditionalGeneration.get_image_features; modeling_instructblip.py, the same of
/// InstructBlipForConditionalGeneration; modeling_instructblipvideo.py,
/// InstructBlipVideoForConditionalGeneration.get_video_features, where each frame is read with the instruction.
inline Blip2Features image_features(Context& c, const Blip2Eyes& m, const Blip2Images& in) {
  using namespace eager;
  const bool instructed = m.qformer.config->instructed, videos = in.pixels.shape().rank() == 5;
  Blip2Features r;
  r.vision = forward(c, m.vision, videos ? flatten(in.pixels, 0, 1) : in.pixels);
  const Value& image = r.vision.last;
  const Value mask = fill(c.b, "ones", {image.size(0), image.size(1)}, DType::int64);
  const Value queries = expand(Value(c.b, m.query_tokens), {image.size(0), -1, -1});
  Value query_mask;  // a variable of the function, as those of the text are
  QFormerText text;
  if (instructed) {
    query_mask = fill(c.b, "ones", {queries.size(0), queries.size(1)}, DType::int64);
    text = {in.instruction, in.instruction_mask};
    if (videos) {
      const std::int64_t frames = in.pixels.size(1);
      text.ids = repeat_interleave(text.ids, frames, 0);
      text.mask = repeat_interleave(text.mask, frames, 0);
    }
    text.mask = cat(query_mask, text.mask, 1);
  }
  const Plan plan = kept_in_fp32(c.plan);
  Context q{c.b, plan, c.runtime};
  r.queries = forward(instructed ? c : q, m.qformer, queries, image, mask, text);
  const Value read = to(slice(r.queries, 1, 0, queries.size(1)), image.dtype());
  r.features = forward(c, m.projection, read);
  if (videos) r.features = reshape(r.features, {in.pixels.size(0), -1, r.features.size(2)});
  return r;
}

/// The same in chunks of images, of which the features alone are kept; frames of videos are one call.
inline Blip2Features batch_features(Context& c, const Blip2Eyes& m, const Blip2Images& in) {
  if (c.plan.vision_chunk == 0 || in.pixels.shape().rank() == 5) return image_features(c, m, in);
  const auto images = static_cast<std::size_t>(in.pixels.size(0));
  const std::vector<std::int64_t> rows = chunk_lengths(images, c.plan.vision_chunk);
  const auto cut = [&](const Value& v) { return v ? eager::split(v, rows, 0) : std::vector<Value>(rows.size()); };
  const std::vector<Value> pixels = cut(in.pixels), ids = cut(in.instruction), masks = cut(in.instruction_mask);
  std::vector<Blip2Images> chunks;
  for (std::size_t i = 0; i < rows.size(); ++i) chunks.push_back({pixels[i], ids[i], masks[i]});
  Blip2Features r;
  r.features = in_chunks(c, chunks, [&](const Blip2Images& v) { return image_features(c, m, v).features; });
  return r;
}

/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward up to the language model: the embeddings, and variables of
/// the function that live as long.
struct Blip2Embeds {
  Blip2Features image;
  Value mask;
  Value embeds;
};
/// `embed` is the language model's get_input_embeddings() on the ids.
template <class Embed>
Blip2Embeds embed_images(Context& c, const Blip2Eyes& m, const Blip2Images& in, const Value& ids, Embed&& embed) {
  using namespace eager;
  Blip2Embeds r;
  r.image = batch_features(c, m, in);
  r.embeds = embed(ids);
  r.mask = unsqueeze(compare_scalar("eq.Scalar", ids), -1);
  r.image.features = to(r.image.features, r.embeds.dtype());
  r.embeds = masked_scatter(r.embeds, r.mask, r.image.features);
  return r;
}

}  // namespace vlmest
