// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/diffusion_gemma/canvas.hpp>
#include <vlmest/family/diffusion_gemma/model.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/gemma4_masks.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>

/// DiffusionGemma as generate() runs it (transformers 5.17 models/diffusion_gemma, generation_diffusion_gemma.py,
/// DiffusionGemmaGenerationMixin.generate): a prefill is everything before the first denoising step, a decode step is
/// one denoising step of a canvas, with the logits of the step before it.
namespace vlmest {

/// image_position_ids beside the pixels, by position; one tensor for all images: modeling_diffusion_gemma.py.
inline std::string diffusion_gemma_line(const std::string&, std::int64_t n) {
  using feature_calls::split;
  return "from transformers.modeling_outputs import BaseModelOutputWithPooling; " +
         feature_calls::wrapped("model.model.encoder.get_image_features", "pixel_values, image_position_ids",
                                "BaseModelOutputWithPooling(pooler_output=torch.cat([f(p, s, **k).pooler_output for "
                                "p, s in zip(" +
                                    split("pixel_values", n) + ", " + split("image_position_ids", n) + ")]))");
}
constexpr FamilyTraits traits(const DiffusionGemmaFamily& g) {
  return {.features = FeatureCall{diffusion_gemma_line},
          .plain_head = false,
          .no_videos = "DiffusionGemma's classes take no videos, though its processor does",
          .note =
              "a decode step is one denoising step over a whole canvas, its sampler included; a canvas takes up to "
              "max_denoising_steps of them (generation_config.json, 48 where it is silent)",
          .canvas = g.canvas,
          .denoising_steps = 48};  // DiffusionGemmaGenerationConfig._get_default_generation_params
}

struct DiffusionGemmaInputs {
  TextInputs text;
  Value types;              ///< mm_token_type_ids[B, S], int64
  Value pixels, positions;  ///< none without images
};

inline DiffusionGemmaInputs make_inputs(Context& c, const DiffusionGemmaFamily& f, const Sequences& s) {
  DiffusionGemmaInputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, f.vision, s);
    r.positions =
        c.b.existing("image_position_ids", Role::input, DType::int64, {r.pixels.size(0), r.pixels.size(1), 2});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.types = c.b.existing("mm_token_type_ids", Role::input, DType::int64, {s.batch, s.seq});
  return r;
}
inline std::vector<VisionChunk<DiffusionGemmaInputs>> vision_chunks(const Context& c, const DiffusionGemmaInputs& in,
                                                                    const Sequences& s) {
  return cut_rows(c, in, s, s.images, &DiffusionGemmaInputs::positions);
}

/// DiffusionGemmaEncoderModel.get_image_features.
inline Value image_features(Context& c, const DiffusionGemmaModel& m, const DiffusionGemmaInputs& in,
                            const Sequences& s) {
  const Value last = forward(c, m.vision, in.pixels, in.positions, s.images);
  return forward(c, m.embed_vision, last);
}

/// DiffusionGemmaEncoderModel.create_masks_for_generate: with pictures as blocks every mask is written out, also of
/// prompts without any; else as masking_utils.py, create_masks_for_generate, makes them.
inline LayerMasks encoder_masks(Context& c, const Gemma4TextConfig& g, const Value& ids, const Value& attention_mask,
                                const Value& types, const Cache& cache) {
  const std::int64_t batch = ids.size(0), tokens = ids.size(1);
  const MaskShape full = mask_shape(cache, batch, tokens), sliding = mask_shape(cache, batch, tokens, g.window);
  if (!g.blocks_of_images) return masks_of_types(c, g, attention_mask, full, sliding);
  Value blocks = eager::fill(c.b, "full", {batch, tokens}, DType::int64);
  blocks = vision_blocks(c, types);
  LayerMasks r;
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  if (slides < g.layers) r.full = block_mask(c, full, attention_mask, blocks);
  if (slides > 0) r.sliding = block_mask(c, sliding, attention_mask, blocks);
  return r;
}

/// DiffusionGemmaTextScaledWordEmbedding.forward.
inline Value embed(Context& c, const DiffusionStack& s, const Value& ids) {
  return scaled_rows(c, s.embed_tokens, s.embed_scale, ids);
}

/// DiffusionGemmaEncoderModel.forward with position ids and masks: normed hidden states, the cache filled.
inline Value encode(Context& c, const DiffusionGemmaModel& m, const DiffusionGemmaInputs& in, const Sequences& s,
                    const Value& ids, const Value& position_ids, const LayerMasks& masks, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.encoder_scope);
  Value places = compare_scalar("eq.Scalar", ids);
  Value text_ids = clone(ids);
  text_ids = pointwise_("index_put_", text_ids, places);
  Value embeds = embed(c, m.encoder, text_ids);
  Value features, count;
  if (in.pixels) {
    features = batch_features(c, m, in, s);
    features = to(features, embeds.dtype());
    count = sum_all(places);
    places = unsqueeze(std::move(places), -1);
    check_features(embeds, places, features.size(0), count);
    embeds = masked_scatter(embeds, places, features);
  }
  InScope l(c.b, m.encoder.scope);
  return forward_diffusion_stack(c, m.config->language, m.encoder, embeds, position_ids, masks, cache, false);
}

/// DiffusionGemmaDecoderModel.create_diffusion_decoder_attention_mask: none where nothing is padded.
inline void decoder_masks(Context& c, const Value& real) {
  if (c.padded)
    throw Error("plan.more_sizes", "the decoder's masks over padded sequences are not modelled",
                "give plan.seq, to which text fills every sequence");
  eager::item(eager::reduce("all", DType::boolean, Shape{}, real));
}

/// Places in Cache::held of the variables of generate() that a step reads.
namespace held_by_generate {
enum Place : std::size_t { decoder_positions, encoder_states };
}  // namespace held_by_generate

/// generate() up to its first denoising step. What its variables hold then stays with the cache.
inline Value prefill(Context& c, const DiffusionGemmaModel& m, const DiffusionGemmaInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  if (c.labels)
    throw Error("Phases::train",
                "DiffusionGemmaForBlockDiffusion computes no loss: what it is trained on is left to the trainer",
                "estimate inference, or train a Gemma 4");
  Builder& b = c.b;
  const std::int64_t canvas = m.config->canvas;
  InScope root(b, m.root);
  if (!in.pixels) item(reduce("any", DType::boolean, Shape{}, compare_scalar("eq.Scalar", in.text.ids)));
  const Value finished_sequences = fill(b, "zeros", {s.batch}, DType::boolean);
  const Value passes = fill(b, "zeros", {s.batch}, DType::int32);
  const Value encoder_positions = unsqueeze(fill(b, "arange.start", {s.seq}, DType::int32), 0);
  const Value decoder_positions = unsqueeze(fill(b, "arange.start", {canvas}, DType::int32), 0);
  const Value real = to(in.text.mask, DType::boolean);
  const Value canvas_real = pad(real, -1, 0, canvas);
  const Value ids = clone(in.text.ids);
  LayerMasks masks;
  {
    const Value shape = empty(b, "empty.memory_format", {s.batch, s.seq, 0}, c.dtype());
    masks = encoder_masks(c, m.config->language, ids, real, in.types, cache);
  }
  Value hidden = encode(c, m, in, s, ids, encoder_positions, masks, cache);
  const Value first = random_canvas(b, s.batch, canvas);
  decoder_masks(c, canvas_real);
  const Value finished = fill(b, "zeros", {s.batch}, DType::boolean);
  {
    Value done = pointwise("bitwise_or.Tensor", DType::boolean, finished, finished_sequences);
    pointwise_("add_.Tensor", passes, pointwise("bitwise_not", DType::boolean, std::move(done)));
  }
  cache.held = {decoder_positions, hidden,     finished_sequences, passes,        encoder_positions, real,
                canvas_real,       masks.full, masks.sliding,      std::move(ids)};
  return hidden;
}

/// DiffusionGemmaDecoderModel.forward and the head: fp32 logits of the canvas.
inline Value denoise(Context& c, const DiffusionGemmaModel& m, const Value& ids, const Value& before,
                     const Value& positions, Cache& cache) {
  using namespace eager;
  const Gemma4TextConfig& g = m.config->language;
  Value hidden;
  {
    InScope scope(c.b, m.decoder.scope);
    Value embeds = embed(c, m.decoder, ids);
    const Value table(c.b, m.decoder.embed_tokens.weight);
    Value weights = to(softmax(before, DType::fp32), c.dtype());
    Value soft = mul(matmul_rows(std::move(weights), table), Value(c.b, m.decoder.embed_scale));
    embeds = forward(c, m.self_conditioning, embeds, soft);
    hidden = forward_diffusion_stack(c, g, m.decoder, embeds, positions, {}, cache, true);
  }
  Value logits = forward(c, m.head, hidden);
  logits = to(logits, DType::fp32);
  logits = div_scalar(logits);
  logits = unary(functions::tanh, logits);
  return mul_scalar(logits);
}

/// What generate() holds when it takes a step on a later canvas: behind the prompt's call of the encoder came one for
/// each canvas before, whose results took the places of the first one's.
inline void hold_later_canvas(Context& c, const DiffusionGemmaFamily& f, std::int64_t batch, std::int64_t seen,
                              Cache& cache) {
  cache.held.clear();
  const auto hold = [&](const char* name, DType t, const Shape& s) {
    cache.held.push_back(c.b.existing(name, Role::input, t, s));
  };
  hold("decoder_position_ids", DType::int32, {1, f.canvas});
  hold("last_hidden_state", c.dtype(), {batch, f.canvas, f.language.hidden});
  hold("encoder_position_ids", DType::int32, {1, f.canvas});
  hold("unprocessed_input_ids", DType::int64, {batch, f.canvas});
  hold("attention_mask", DType::boolean, {batch, seen});
  hold("decoder_attention_mask", DType::boolean, {batch, seen + f.canvas});
  const DType t = c.plan.attention == AttentionKind::eager ? c.dtype() : DType::boolean;
  const std::int64_t slides = std::count(f.language.sliding.begin(), f.language.sliding.end(), true);
  const std::int64_t in_window = std::min(seen - f.canvas, f.language.window - 1) + f.canvas;
  if (slides < f.language.layers) hold("full mask", t, {batch, 1, f.canvas, seen});
  if (slides > 0) hold("sliding mask", t, {batch, 1, f.canvas, in_window});
}

/// DiffusionGemmaGenerationMixin._denoising_step, of which `in.ids` are the canvas: any but the first one on it, which
/// has no logits of a step before it.
inline Value decode(Context& c, const DiffusionGemmaModel& m, const TextInputs& in, Cache& cache) {
  using namespace eager;
  Builder& b = c.b;
  const DiffusionGemmaFamily& f = *m.config;
  InScope root(b, m.root);
  const std::int64_t batch = in.ids.size(0), canvas = in.ids.size(1), seen = cache.layers.front().seen;
  if (cache.held[held_by_generate::encoder_states].size(1) != seen) hold_later_canvas(c, f, batch, seen, cache);
  Value finished = b.existing("finished_denoising", Role::input, DType::boolean, {batch});
  const Value best = b.existing("argmax_canvas", Role::input, DType::int64, {batch, canvas});
  const Value before =
      b.existing("self_conditioning_logits", Role::input, c.dtype(), {batch, canvas, f.language.vocab});
  SamplerStates states;
  // What the sampler keeps is rebound within the step, which no caller's input is.
  states.accepted = b.existing("accepted_token_mask", Role::workspace, DType::boolean, {batch, canvas});
  states.history = b.existing("argmax_canvas_history", Role::workspace, DType::int64, {1, batch, canvas});
  const Value step = from_host(b, Shape{}, DType::int32);
  const Value raw = denoise(c, m, in.ids, before, cache.held[held_by_generate::decoder_positions], cache);
  Denoised r = sample_canvas(states, raw, step, in.ids, std::move(finished), c.dtype());
  return std::move(r.logits);
}

}  // namespace vlmest
