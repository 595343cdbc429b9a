// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/audio_inputs.hpp>
#include <vlmest/nn/family/one_token.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

/// The assembly of models of sound and text (Voxtral, GLM-ASR, Qwen3-ASR): an encoder, a language model, a projector of
/// two layers, features scattered into the embeddings. A family is an aggregate derived of nothing with `audio`,
/// `language`, `projector`, `tied` and a constant `feature_mask`, the name of the mask that its processor hands over
/// beside the features; audio_features(c, model, inputs, sequences) is its get_audio_features.
namespace vlmest {

template <class Family>
struct AudioLm {
  using Tower = decltype(make_tower(std::declval<Context&>(), std::declval<const Family&>().audio));

  const Family* config = nullptr;
  ScopeId model = 0;
  Tower audio;
  Decoder language;
  Mlp2 projector;
  Linear head;
};

/// In the order of VoxtralModel.__init__ and VoxtralForConditionalGeneration.__init__.
template <class Family>
AudioLm<Family> make_audio_lm(Context& c, const Family& g) {
  AudioLm<Family> r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module a(c, "audio_tower", Part::audio);
      r.audio = make_tower(c, g.audio);
    }
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    Module p(c, "multi_modal_projector", Part::projector);
    r.projector = make_projector(c, g.projector);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct AudioLmInputs {
  TextInputs text;
  AudioInputs audio;
};
inline AudioLmInputs make_audio_lm_inputs(Context& c, const Sequences& s, const char* mask) {
  AudioLmInputs r;
  r.audio = make_audio_inputs(c, s, mask);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// VoxtralForConditionalGeneration.forward over a fresh cache; its output carries the features.
template <class Family>
Value audio_lm_prefill(Context& c, const AudioLm<Family>& m, const AudioLmInputs& in, const Sequences& s,
                       Cache& cache) {
  using namespace eager;
  Value hidden, features;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;
    if (in.audio.features) {
      features = audio_features(c, m, in.audio, s);
      mask = compare_scalar("eq.Scalar", in.text.ids);
      {
        const Value count = sum_all(mask);
        mask = unsqueeze(std::move(mask), -1);
        check_features(embeds, mask, audio_feature_count(s.audios), count);
      }
      embeds = masked_scatter(embeds, mask, to(features, embeds.dtype()));
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
template <class Family>
Value audio_lm_decode(Context& c, const AudioLm<Family>& m, const TextInputs& in, Cache& cache) {
  return decode_one_token(c, m, in, cache);
}

}  // namespace vlmest
