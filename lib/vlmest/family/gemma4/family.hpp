// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/nn/audio/gemma4.hpp>
#include <vlmest/nn/decoder/gemma4_text.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/gemma4_masks.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/projector/gemma4.hpp>
#include <vlmest/nn/vision/gemma4.hpp>

namespace vlmest {

/// Gemma 4 (transformers 5.17 models/gemma4): a tower over padded rows of patches, a language model whose layers get
/// something of each token beside their input, and an audio tower that is loaded with it.
struct Gemma4Family {
  Gemma4Vision vision;
  Gemma4TextConfig language;
  std::optional<Gemma4Audio> audio;
  bool tied = true;
  LogitStep logits = LogitStep::as_is;
};
/// image_position_ids beside the pixels, by position; a list for each image: modeling_gemma4.py,
/// modeling_gemma4_unified.py.
inline std::string gemma4_line(const std::string&, std::int64_t n) {
  using feature_calls::split;
  return feature_calls::image_features("pixel_values, image_position_ids",
                                       "[y for p, s in zip(" + split("pixel_values", n) + ", " +
                                           split("image_position_ids", n) + ") for y in f(p, s, **k).pooler_output]");
}
constexpr FamilyTraits traits(const Gemma4Family& g) {
  return {.features = FeatureCall{gemma4_line},
          .plain_head = g.logits == LogitStep::as_is,
          .audio_tower = g.audio.has_value()};
}

/// The language model alone: Gemma4ForCausalLM, Gemma4UnifiedForCausalLM.
using Gemma4LmFamily = CausalLm<Gemma4TextConfig>;

struct Gemma4Model {
  const Gemma4Family* config = nullptr;
  ScopeId model = 0;
  Gemma4Tower vision;
  Gemma4Text language;
  Gemma4Embedder embed_vision;
  Gemma4AudioTower audio;  ///< where the config has one
  Gemma4Embedder embed_audio;
  Linear head;
};

/// In the order of Gemma4Model.__init__ and Gemma4ForConditionalGeneration.__init__.
inline Gemma4Model make_model(Context& c, const Gemma4Family& g) {
  Gemma4Model r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    if (g.audio) {
      Module a(c, "audio_tower", Part::audio);
      r.audio = make_tower(c, *g.audio);
    }
    {
      Module e(c, "embed_vision", Part::projector);
      r.embed_vision = make_gemma4_embedder(c, g.vision.hidden, g.language.hidden);
    }
    if (g.audio) {
      Module e(c, "embed_audio", Part::projector);
      r.embed_audio = make_gemma4_embedder(c, g.audio->out, g.language.hidden);
    }
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

/// Inputs of a forward; types[B, S] (mm_token_type_ids, int64) tell what each token is of.
struct Gemma4Inputs {
  TextInputs text;
  Value types;
  Value pixels, positions;  ///< none without images
  Value features, frames;   ///< input_features[clips, frames, mels] and their mask (bool); none without clips
};

template <class Vision>
Gemma4Inputs make_gemma4_inputs(Context& c, const Vision& vision, const Sequences& s) {
  Gemma4Inputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, vision, s);
    r.positions =
        c.b.existing("image_position_ids", Role::input, DType::int64, {r.pixels.size(0), r.pixels.size(1), 2});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.types = c.b.existing("mm_token_type_ids", Role::input, DType::int64, {s.batch, s.seq});
  return r;
}
inline Gemma4Inputs make_inputs(Context& c, const Gemma4Family& g, const Sequences& s) {
  Gemma4Inputs r = make_gemma4_inputs(c, g.vision, s);
  if (s.audios.empty()) return r;
  const auto clips = static_cast<std::int64_t>(s.audios.size());
  const AudioLayout& l = s.audios.front();
  r.features = c.b.existing("input_features", Role::input, c.dtype(), {clips, l.row_frames, l.mels});
  r.frames = c.b.existing("input_features_mask", Role::input, DType::boolean, {clips, l.row_frames});
  return r;
}
inline std::vector<VisionChunk<Gemma4Inputs>> vision_chunks(const Context& c, const Gemma4Inputs& in,
                                                            const Sequences& s) {
  return cut_rows(c, in, s, s.images, &Gemma4Inputs::positions);
}

/// Gemma4Model.get_image_features: a list with those of each image, whose counts the host reads from the positions.
inline std::vector<Value> image_features(Context& c, const Gemma4Model& m, const Gemma4Inputs& in, const Sequences& s) {
  using namespace eager;
  const Value last = forward(c, m.vision, in.pixels, in.positions, s.images);
  const Value embedded = forward(c, m.embed_vision, last);
  const Value real = all_of(compare_scalar("ne.Scalar", in.positions), -1);
  to_host(unary("floor_divide", sum(real, -1, false)));
  return split(embedded, feature_counts(s.images), 0);
}

/// modeling_gemma4.py, create_masks_for_vision_model where there are types and the model's pictures are blocks. Blocks
/// are no part of full layers; the sliding mask's sizes are asked for first, which converts the padding mask once more.
/// `blocks` is a variable of the caller.
inline LayerMasks layer_masks(Context& c, const Gemma4Family& f, const TextInputs& in, const Value& types,
                              const Cache& cache, Value& blocks) {
  using namespace eager;
  const Gemma4TextConfig& g = f.language;
  LayerMasks r;
  const std::int64_t batch = in.ids.size(0), tokens = in.ids.size(1);
  const MaskShape full = mask_shape(cache, batch, tokens), sliding = mask_shape(cache, batch, tokens, g.window);
  if (!g.blocks_of_images || !types) return masks_of_types(c, g, in.mask, full, sliding);
  blocks = vision_blocks(c, types);
  r.full = causal_mask(c, full, in.mask);
  to(in.mask, DType::boolean);
  r.sliding = windowed_block_mask(c, sliding, in.mask, padded_blocks(blocks, sliding));
  return r;
}

/// What Gemma4Model.forward holds of its clips until it returns.
struct HeardStates {
  Value states, embedded, mask, features, count;
};
/// A model without an audio tower has no clips.
template <class Model>
void place_clips(Context&, const Model&, const Gemma4Inputs&, const Sequences&, Value&, Value&, HeardStates&) {}
/// The audio tower's states that show something, into the placeholders.
inline void place_clips(Context& c, const Gemma4Model& m, const Gemma4Inputs& in, const Sequences& s, Value& embeds,
                        Value& places, HeardStates& h) {
  using namespace eager;
  h.mask = in.frames;
  h.states = forward(c, m.audio, in.features, h.mask);
  h.embedded = forward(c, m.embed_audio, h.states);
  h.features = masked_index(h.embedded, h.mask, s.audio_tokens * s.batch);
  h.count = sum_all(places);
  places = unsqueeze(std::move(places), -1);
  check_features(embeds, places, h.features.size(0), h.count);
  embeds = masked_scatter(embeds, places, to(h.features, embeds.dtype()));
}

/// Features that the output of a forward carries.
struct CarriedFeatures {
  Value images, clips;
};

/// Gemma4Model.forward: token ids and pixels -> normed hidden states. The variables of its caller's output keep the
/// features. Placeholders are embedded as padding.
template <class Model>
Value gemma4_hidden(Context& c, const Model& m, const TextInputs& text, const Value& types, const Gemma4Inputs* images,
                    const Sequences* s, Cache& cache, CarriedFeatures& features) {
  using namespace eager;
  check_wide_heads(c);
  const Gemma4TextConfig& g = m.config->language;
  InScope scope(c.b, m.model);
  const auto places = [&] { return compare_scalar("eq.Scalar", text.ids); };
  Value image = places();
  const Value video = places();
  Value audio = places();
  Value any = pointwise("bitwise_or.Tensor", DType::boolean, image, video);
  any = pointwise("bitwise_or.Tensor", DType::boolean, any, audio);
  Value ids = clone(text.ids);
  {
    Value padding = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
    ids = where(any, std::move(padding), ids);
  }
  Value embeds = embed(c, m.language, ids);
  Value of_text, of_tokens, per_layer, count, blocks;
  if (g.per_layer > 0) {
    const Value row = select(Value(c.b, m.language.embed_tokens.weight), 0, 0);
    of_text = where(unsqueeze(any, -1), view(row, {1, 1, -1}), embeds);
    InScope l(c.b, m.language.scope);
    of_tokens = per_layer_inputs(c, m.language, ids);
  }
  if (images != nullptr && images->pixels) {
    std::vector<Value> parts = batch_features(c, m, *images, *s);
    features.images = to(cat(parts, 0), embeds.dtype());
    parts.clear();
    count = sum_all(image);
    image = unsqueeze(std::move(image), -1);
    check_features(embeds, image, features.images.size(0), count);
    embeds = masked_scatter(embeds, image, features.images);
  }
  HeardStates heard;
  if (images != nullptr && images->features) place_clips(c, m, *images, *s, embeds, audio, heard);
  features.clips = heard.features;
  const Value position_ids = text_positions(c, text.ids.size(1));
  const LayerMasks masks = layer_masks(c, *m.config, text, types, cache, blocks);
  if (of_tokens) per_layer = project_per_layer_inputs(c, m.language, embeds, of_tokens);
  return forward(c, m.language, embeds, per_layer, position_ids, masks, cache);
}

/// Gemma4ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Gemma4Model& m, const Gemma4Inputs& in, const Sequences& s, Cache& cache) {
  CarriedFeatures features;
  const Value hidden = gemma4_hidden(c, m, in.text, in.types, &in, &s, cache, features);
  return head_output(c, m.head, hidden, [&](Value x) { return finish_logits(m.config->logits, std::move(x)); });
}

/// One token over the cache; generate() leaves mm_token_type_ids out after the first step.
inline Value decode(Context& c, const Gemma4Model& m, const TextInputs& in, Cache& cache) {
  CarriedFeatures features;
  const Value hidden = gemma4_hidden(c, m, in, {}, nullptr, nullptr, cache, features);
  return finish_logits(m.config->logits, forward(c, m.head, kept_positions(hidden, Logits::last)));
}

/// Gemma4TextModel.forward as Gemma4ForCausalLM calls it: masks of both types, whatever the layers are.
inline Value last_hidden_state(Context& c, const CausalLmModel<Gemma4TextConfig>& m, const TextInputs& in,
                               Cache& cache) {
  check_wide_heads(c);
  const Gemma4TextConfig& g = m.config->language;
  InScope scope(c.b, m.model);
  const Value embeds = embed(c, m.language, in.ids);
  Value per_layer;
  if (g.per_layer > 0) {
    per_layer = per_layer_inputs(c, m.language, in.ids);
    per_layer = project_per_layer_inputs(c, m.language, embeds, per_layer);
  }
  const Value position_ids = text_positions(c, in.ids.size(1));
  const LayerMasks masks = causal_masks(c, g, in.mask, in.ids.size(0), in.ids.size(1), cache);
  return forward(c, m.language, embeds, per_layer, position_ids, masks, cache);
}

}  // namespace vlmest
