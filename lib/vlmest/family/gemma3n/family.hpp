// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/audio.hpp>
#include <vlmest/family/gemma3n/embedder.hpp>
#include <vlmest/family/gemma3n/text.hpp>
#include <vlmest/family/gemma3n/vision.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>

namespace vlmest {

/// Gemma 3n (transformers 5.17 models/gemma3n): a network of convolutions over pictures, a conformer over sound, a
/// language model whose layers get something of each token beside their input.
struct Gemma3nFamily {
  Gemma3nVision vision;
  Gemma3nTextConfig language;
  Gemma3nAudio audio;
  bool tied = true;
};
constexpr FamilyTraits traits(const Gemma3nFamily&) {
  return {.features = feature_calls::tensor, .plain_head = false, .audio_tower = true};
}

/// The language model alone: Gemma3nForCausalLM.
using Gemma3nLmFamily = CausalLm<Gemma3nTextConfig>;

struct Gemma3nModel {
  const Gemma3nFamily* config = nullptr;
  ScopeId model = 0;
  MobileNetV5 vision;
  Gemma3nText language;
  Gemma3nAudioTower audio;
  Gemma3nEmbedder embed_vision, embed_audio;
  Linear head;
};

/// In the order of Gemma3nModel.__init__ and Gemma3nForConditionalGeneration.__init__.
inline Gemma3nModel make_model(Context& c, const Gemma3nFamily& g) {
  Gemma3nModel r{.config = &g};
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
    {
      Module a(c, "audio_tower", Part::audio);
      r.audio = make_tower(c, g.audio);
    }
    {
      Module e(c, "embed_vision", Part::projector);
      r.embed_vision = make_gemma3n_embedder(c, g.vision.vocab, g.vision.hidden, g.language.hidden);
    }
    {
      Module e(c, "embed_audio", Part::projector);
      r.embed_audio = make_gemma3n_embedder(c, g.audio.vocab, g.audio.hidden, g.language.hidden);
    }
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

/// Inputs of a forward; types[B, S] (token_type_ids, int64), which the model takes and does not read.
struct Gemma3nInputs {
  TextInputs text;
  Value types;
  Value pixels;            ///< none without images
  Value features, frames;  ///< input_features[clips, frames, mels] and their mask (bool); none without clips
};
inline Gemma3nInputs make_inputs(Context& c, const Gemma3nFamily&, const Sequences& s) {
  constexpr std::int64_t side = mobilenet_v5::image_size;
  Gemma3nInputs r;
  const auto images = static_cast<std::int64_t>(s.images.size()), clips = static_cast<std::int64_t>(s.audios.size());
  if (images > 0) r.pixels = c.b.existing("pixel_values", Role::input, c.dtype(), {images, 3, side, side});
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.types = c.b.existing("token_type_ids", Role::input, DType::int64, {s.batch, s.seq});
  if (clips == 0) return r;
  const AudioLayout& l = s.audios.front();
  r.features = c.b.existing("input_features", Role::input, c.dtype(), {clips, l.row_frames, l.mels});
  r.frames = c.b.existing("input_features_mask", Role::input, DType::boolean, {clips, l.row_frames});
  return r;
}
inline std::vector<VisionChunk<Gemma3nInputs>> vision_chunks(const Context& c, const Gemma3nInputs& in,
                                                             const Sequences& s) {
  return cut_rows(c, in, s, s.images);
}

/// Gemma3nModel.get_image_features: the map's channels as rows, scaled in place.
inline Value image_features(Context& c, const Gemma3nModel& m, const Gemma3nInputs& in, const Sequences&) {
  using namespace eager;
  const Gemma3nVision& g = m.config->vision;
  Value map = forward(c, m.vision, in.pixels);
  const Value last = scale_part(map, [n = map.size(0), hidden = g.hidden, features = g.features](const Value& v) {
    return permute(view(v, {n, hidden, features}), {0, 2, 1});
  });
  return embed_features(c, m.embed_vision, last);
}

/// get_placeholder_mask: where pictures' and clips' placeholders stand; the host checks the counts of one kind.
struct Placeholders {
  Value images, clips;
};
inline Placeholders placeholders(const Value& ids, bool of_clips) {
  using namespace eager;
  Placeholders p;
  p.images = compare_scalar("eq.Scalar", ids);
  p.clips = compare_scalar("eq.Scalar", ids);
  const Value images = sum_all(p.images);
  p.images = unsqueeze(std::move(p.images), -1);
  if (!of_clips) check_feature_count(images);
  const Value clips = sum_all(p.clips);
  p.clips = unsqueeze(std::move(p.clips), -1);
  if (of_clips) check_feature_count(clips);
  return p;
}

/// Tokens of a tower's own vocabulary, which take their embeddings' places: what Gemma3nModel.forward keeps of them.
struct OwnTokens {
  Value mask, ids, embeds;
};
inline OwnTokens place_own_tokens(Context& c, const Gemma3nEmbedder& e, const Value& ids, bool last, Value& embeds) {
  using namespace eager;
  OwnTokens r;
  if (last) {
    r.mask = compare_scalar("ge.Scalar", ids);
  } else {
    Value above = compare_scalar("ge.Scalar", ids), below = compare_scalar("lt.Scalar", ids);
    r.mask = pointwise("logical_and", DType::boolean, std::move(above), std::move(below));
  }
  {
    Value other = fill(c.b, "scalar_tensor", Shape{}, DType::int64);
    r.ids = where(r.mask, ids, std::move(other));
  }
  r.embeds = embed_tokens(c, e, r.ids);
  embeds = where(unsqueeze(r.mask, -1), r.embeds, embeds);
  return r;
}

/// What Gemma3nModel.forward holds of its clips until it returns.
struct HeardFeatures {
  Value last, mask, embedded, filler, padding, features, places;
};
/// The audio tower's features, filled up to as many as each clip has placeholders, into these. `unnamed` is the
/// variable that both kinds' calls leave the other kind's placeholders in.
inline void place_clips(Context& c, const Gemma3nModel& m, const Gemma3nInputs& in, Value& embeds, HeardFeatures& h,
                        Value& unnamed) {
  using namespace eager;
  const Gemma3nAudio& g = m.config->audio;
  {
    const Value hidden = pointwise("bitwise_not", DType::boolean, in.frames);
    h.mask = hidden;
    h.last = forward(c, m.audio, in.features, h.mask);
    h.embedded = embed_features(c, m.embed_audio, h.last);
  }
  h.filler = from_host(c.b, {1, 1}, DType::int64);
  h.padding = embed_tokens(c, m.embed_audio, h.filler);
  h.features = where(unsqueeze(h.mask, -1), h.padding, h.embedded);
  const std::int64_t n = h.features.size(0), lacking = g.tokens - h.features.size(1);
  {
    const Value extra = expand(h.padding, {n, lacking, h.features.size(2)});
    h.features = cat(h.features, extra, 1);
  }
  {
    Placeholders places = placeholders(in.text.ids, true);
    unnamed = std::move(places.images);
    h.places = std::move(places.clips);
  }
  embeds = masked_scatter(embeds, h.places, h.features);
}

/// Features that the output of a forward carries.
struct CarriedGemma3nFeatures {
  Value images, clips;
};

/// Gemma3nModel.forward: token ids, pixels and sound -> normed hidden states; `in` is none behind the first token.
inline Value gemma3n_hidden(Context& c, const Gemma3nModel& m, const TextInputs& text, const Gemma3nInputs* in,
                            const Sequences* s, Cache& cache, CarriedGemma3nFeatures& carried) {
  using namespace eager;
  check_shared_keys(c);
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, text.ids);
  Value known;
  {
    Value above = compare_scalar("ge.Scalar", text.ids), below = compare_scalar("lt.Scalar", text.ids);
    known = pointwise("logical_and", DType::boolean, std::move(above), std::move(below));
  }
  Value known_ids;
  {
    Value zeros = fill(c.b, "zeros_like", text.ids.shape(), DType::int64);
    known_ids = where(known, text.ids, std::move(zeros));
  }
  const Value of_tokens = per_layer_inputs(c, m.language, known_ids);
  const OwnTokens seen = place_own_tokens(c, m.embed_vision, text.ids, false, embeds);
  const OwnTokens heard = place_own_tokens(c, m.embed_audio, text.ids, true, embeds);
  Placeholders places;
  if (in != nullptr && in->pixels) {
    carried.images = batch_features(c, m, *in, *s);
    places = placeholders(text.ids, false);
    embeds = masked_scatter(embeds, places.images, carried.images);
  }
  HeardFeatures clips;
  if (in != nullptr && in->features) place_clips(c, m, *in, embeds, clips, places.clips);
  carried.clips = clips.features;
  InScope language(c.b, m.language.scope);
  return forward(c, m.language, embeds, of_tokens, text.mask, cache);
}

/// Gemma3nForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Gemma3nModel& m, const Gemma3nInputs& in, const Sequences& s, Cache& cache) {
  CarriedGemma3nFeatures carried;
  const Value hidden = gemma3n_hidden(c, m, in.text, &in, &s, cache, carried);
  return head_output(c, m.head, hidden, [](Value x) { return finish_logits(LogitStep::softcap, std::move(x)); });
}

/// One token over the cache.
inline Value decode(Context& c, const Gemma3nModel& m, const TextInputs& in, Cache& cache) {
  CarriedGemma3nFeatures carried;
  const Value hidden = gemma3n_hidden(c, m, in, nullptr, nullptr, cache, carried);
  return finish_logits(LogitStep::softcap, forward(c, m.head, kept_positions(hidden, Logits::last)));
}

/// Gemma3nTextModel.forward of token ids, as Gemma3nForCausalLM calls it.
inline Value last_hidden_state(Context& c, const CausalLmModel<Gemma3nTextConfig>& m, const TextInputs& in,
                               Cache& cache) {
  check_shared_keys(c);
  InScope scope(c.b, m.model);
  const Value embeds = embed(c, m.language, in.ids);
  Value of_tokens = per_layer_inputs(c, m.language, in.ids);
  return forward(c, m.language, embeds, std::move(of_tokens), in.mask, cache);
}

}  // namespace vlmest
