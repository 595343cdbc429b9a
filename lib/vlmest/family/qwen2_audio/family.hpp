// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/clip_mask.hpp>
#include <vlmest/nn/audio/whisper_encoder.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/audio_inputs.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// Qwen2-Audio (transformers 5.17 models/qwen2_audio): Whisper's encoder over clips that are filled up to 30 seconds, a
/// linear projector, a language model.
struct Qwen2AudioFamily {
  WhisperEncoder audio{.pools = true};
  DecoderConfig language;
};
/// Logits are those of all positions: the class has no logits_to_keep, and selects what its loss is of by the mask.
constexpr FamilyTraits traits(const Qwen2AudioFamily&) {
  return {.features = feature_calls::no_images, .plain_head = false, .all_logits = true, .audio_tower = true};
}

struct Qwen2AudioModel {
  const Qwen2AudioFamily* config = nullptr;
  ScopeId model = 0, projector_scope = 0;
  WhisperTower audio;
  Linear projector;
  Decoder language;
  Linear head;
};

/// In the order of Qwen2AudioModel.__init__ and Qwen2AudioForConditionalGeneration.__init__.
inline Qwen2AudioModel make_model(Context& c, const Qwen2AudioFamily& g) {
  Qwen2AudioModel r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module a(c, "audio_tower", Part::audio);
      r.audio = make_tower(c, g.audio);
    }
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector_scope = p.scope;
      r.projector = make_linear(c, "linear", g.audio.widths.hidden, width(g.language), true);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), false, embedding_weight(r.language));
  return r;
}

struct Qwen2AudioInputs {
  TextInputs text;
  AudioInputs audio;
};

inline Qwen2AudioInputs make_inputs(Context& c, const Qwen2AudioFamily&, const Sequences& s) {
  Qwen2AudioInputs r;
  r.audio = make_audio_inputs(c, s, "feature_attention_mask");
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// What Qwen2AudioModel.forward holds of its clips until it returns.
struct HeardClips {
  Value states_lengths, output_lengths, range, padding, real, dummy, mask, states, features, tokens, expanded, counted,
      places;
};

/// modeling_qwen2_audio.py, Qwen2AudioModel.forward, from the lengths of the clips to their features in the embeddings.
inline void place_clips(Context& c, const Qwen2AudioModel& m, const Qwen2AudioInputs& in, const Sequences& s,
                        Value& embeds, HeardClips& h) {
  using namespace eager;
  const std::int64_t rows = in.audio.features.size(0), states = audio::after_convolutions(in.audio.features.size(2));
  {
    const Value lengths = sum(in.audio.mask, -1, false);
    h.states_lengths = add_scalar(floor_divide(sub_scalar(lengths)));
  }
  h.output_lengths = add_scalar(floor_divide(sub_scalar(h.states_lengths)));
  h.range = fill(c.b, "arange.start", {states}, DType::int64);
  h.padding = compare("ge.Tensor", expand(unsqueeze(h.range, 0), {rows, states}), unsqueeze(h.states_lengths, 1));
  h.real = to(pointwise("bitwise_not", DType::boolean, h.padding), DType::int64);
  h.dummy = fill(c.b, "zeros", {rows, states, 1}, embeds.dtype());
  h.mask = clip_mask(c, h.real, has_padding(s.audios));
  {
    InScope a(c.b, m.audio.scope);
    h.states = forward(c, m.audio, in.audio.features, h.mask);
  }
  {
    InScope p(c.b, m.projector_scope);
    h.features = forward(c, m.projector, h.states);
  }
  // Consecutive placeholders mean that the processor has expanded them: the host asks.
  h.tokens = compare_scalar("eq.Scalar", in.text.ids);
  const std::int64_t n = in.text.ids.size(1);
  {
    Value both =
        pointwise("bitwise_and.Tensor", DType::boolean, slice(h.tokens, 1, 0, n - 1), slice(h.tokens, 1, 1, n));
    h.expanded = compare_scalar("eq.Scalar", sum_all(std::move(both)));
    item(h.expanded);
  }
  h.counted = arange(c.b, h.features.size(1));
  h.counted = compare("lt.Tensor", unsqueeze(h.counted, 0), unsqueeze(h.output_lengths, 1));
  h.features = masked_index(h.features, h.counted, audio_feature_count(s.audios));
  item(sum_all(compare_scalar("eq.Scalar", in.text.ids)));
  h.places = unsqueeze(compare_scalar("eq.Scalar", in.text.ids), -1);
  h.features = to(h.features, embeds.dtype());
  embeds = masked_scatter(embeds, h.places, h.features);
}

/// modeling_qwen2_audio.py, Qwen2AudioForConditionalGeneration.forward with labels: of all positions that the mask
/// shows, in the logits' own type.
inline Value masked_loss(const Value& logits, const Value& labels, const Value& mask, std::int64_t tokens) {
  using namespace eager;
  const std::int64_t n = labels.size(1);
  const Value shown = slice(mask, 1, 1, n);
  Value rows = masked_index(slice(logits, 1, 0, n - 1), compare_scalar("ne.Scalar", shown), tokens);
  Value next = masked_index(slice(labels, 1, 1, n), compare_scalar("ne.Scalar", shown), tokens);
  return cross_entropy(view(rows, {-1, logits.size(2)}), view(next, {-1}));
}

inline Value prefill(Context& c, const Qwen2AudioModel& m, const Qwen2AudioInputs& in, const Sequences& s,
                     Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    HeardClips heard;
    if (in.audio.features) place_clips(c, m, in, s, embeds, heard);
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  const Value logits = forward(c, m.head, hidden);
  if (!c.labels) return logits;
  std::int64_t shown = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) shown = checked_add(shown, s.length(b) - 1);
  return masked_loss(logits, *c.labels, in.text.mask, shown);
}

/// One token over the cache.
inline Value decode(Context& c, const Qwen2AudioModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, hidden);
}

}  // namespace vlmest
