// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/dots_ocr/tower.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// dots.ocr (rednote-hilab/dots.ocr) by the code that comes with its checkpoint, modeling_dots_ocr.py,
/// DotsOCRForCausalLM: transformers' Qwen2ForCausalLM with a tower beside it, whose features are scattered into the
/// embeddings.
struct DotsOcrFamily {
  DotsVision vision;
  DecoderConfig language;
  bool tied = false;
};

inline FamilyTraits traits(const DotsOcrFamily& g) {
  return {
      .features = FeatureCall{},
      .frames = g.vision.frames,
      .no_videos = "its forward has no argument for them",
      .note = g.vision.attention == DotsAttention::flash
                  ? "dots.ocr's own code with transformers' Qwen2ForCausalLM; its tower writes attention out, as it "
                    "does where the package flash-attn is not installed"
                  : "dots.ocr's own code with transformers' Qwen2ForCausalLM; its tower attends as "
                    "vision_config.attn_implementation says, whatever plan.attention does"};
}

struct DotsOcrModel {
  const DotsOcrFamily* config = nullptr;
  ScopeId outer = 0, model = 0;
  Decoder language;
  Linear head;
  DotsTower vision;
};

/// In the order of Qwen2ForCausalLM.__init__ and DotsOCRForCausalLM.__init__.
inline DotsOcrModel make_model(Context& c, const DotsOcrFamily& g) {
  DotsOcrModel m{.config = &g, .outer = c.b.scope()};
  {
    Module l(c, "model", Part::language);
    m.model = l.scope;
    m.language = make_decoder(c, g.language);
  }
  m.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(m.language));
  Module v(c, "vision_tower", Part::vision);
  m.vision = make_tower(c, g.vision);
  return m;
}

/// What its code refuses, and what no run of it was compared with.
inline void check_dots_ocr_runs(const Context& c, const Sequences& s) {
  const Plan& p = c.plan;
  if (c.stack().flash_attention_2 && p.attention == AttentionKind::flash)
    throw Error("plan.attention", "dots.ocr with FlashAttention-2 was compared with no run",
                "give plan.attention=sdpa or eager");
  if (p.amp)
    throw Error("plan.amp", "dots.ocr under autocast was compared with no run",
                "give plan.dtype=bf16 without plan.amp");
  if (p.param_dtype.value_or(p.dtype) != p.dtype)
    throw Error("plan.param_dtype", "dots.ocr's layers gathered in another type were compared with no run",
                "leave it out");
  if (c.quantization || p.weights.value_or(p.dtype) != p.dtype)
    throw Error("plan.weights", "dots.ocr's quantised weights were compared with no run", "leave it out");
  if (c.sharding)
    throw Error("plan.parallel", "dots.ocr's layers divided among GPUs were compared with no run", "leave it out");
  if (p.vision_chunk > 0)
    throw Error("plan.vision_chunk", "dots.ocr's tower on a few pictures at a time was compared with no run",
                "leave it out");
  if (s.images.empty()) return;
  if (c.dtype() != DType::bf16)
    throw Error("plan.dtype",
                "dots.ocr's tower casts pixels to bf16 whatever its weights are, and its convolution refuses them then",
                "give plan.dtype=bf16");
  if (feature_count(s.images) == 1)
    throw Error("images", "dots.ocr's code takes a single visual token for two and stops", "give a larger picture");
}

struct DotsOcrInputs {
  TextInputs text;
  PackedImages images;
};

/// The processor's pixels are fp32, which no caller casts.
inline DotsOcrInputs make_inputs(Context& c, const DotsOcrFamily& g, const Sequences& s) {
  check_dots_ocr_runs(c, s);
  DotsOcrInputs r{.text = make_text_inputs(c, s.batch, s.seq, s.seq), .images = {}};
  if (!s.images.empty())
    r.images =
        make_packed_images(c, s.images, g.vision.channels, g.vision.frames, g.vision.patch_size, false, DType::fp32);
  return r;
}

/// vision_tower(pixel_values, image_grid_thw).
inline Value image_features(Context& c, const DotsOcrModel& m, const PackedImages& input, const Sequences& s) {
  return forward(c, m.vision, input, s.images);
}

/// prepare_inputs_embeds: features into the rows of placeholders, which the host counts twice; features and places are
/// its variables.
inline Value place_features(Context& c, const DotsOcrModel& m, const DotsOcrInputs& in, const Value& mask,
                            const Sequences& s) {
  using namespace eager;
  Value embeds = embed(c, m.language, in.text.ids);
  if (!in.images.pixels) return embeds;
  const Value features = batch_features(c, m, in.images, s);
  const Value places = nonzero(mask, feature_count(s.images));
  item(compare_scalar("eq.Scalar", sum_all(mask)));
  return masked_scatter(embeds, unsqueeze(mask, -1), features);
}

/// DotsOCRForCausalLM.forward over a fresh cache; the mask of placeholders and the embeddings are its variables.
inline Value prefill(Context& c, const DotsOcrModel& m, const DotsOcrInputs& in, const Sequences& s, Cache& cache) {
  const Value mask = eager::compare_scalar("eq.Scalar", in.text.ids);
  const Value embeds = place_features(c, m, in, mask, s);
  Value hidden;
  {
    InScope scope(c.b, m.model);
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const DotsOcrModel& m, const TextInputs& in, Cache& cache) {
  const Value mask = eager::compare_scalar("eq.Scalar", in.ids);
  const Value embeds = embed(c, m.language, in.ids);
  Value hidden;
  {
    InScope scope(c.b, m.model);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
