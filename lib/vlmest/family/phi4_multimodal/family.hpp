// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/phi4_multimodal/audio.hpp>
#include <vlmest/family/phi4_multimodal/images.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/audio_inputs.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// Phi-4-multimodal (transformers 5.17 models/phi4_multimodal): Phi-3's layers, of whose embeddings a tower over crops
/// and a conformer take the places of pictures and clips.
struct Phi4MultimodalFamily {
  Phi4Vision vision;
  DecoderConfig language = LlamaConfig{};
  Phi4Audio audio;
  bool tied = false;
};
constexpr FamilyTraits traits(const Phi4MultimodalFamily&) {
  return {.features = phi4_features,
          .audio_tower = true,
          .note =
              "transformers' class is estimated as it is loaded: the adapters that its checkpoint has for pictures and "
              "for sound are loaded beside it by model.load_adapter, and are left out"};
}

/// Phi4MultimodalAudioEmbedding: the encoder, and a projector for clips alone and for clips beside pictures.
struct Phi4Clip {
  ScopeId scope = 0;
  Phi4AudioEncoder encoder;
  Linear up, down, up_beside_pictures, down_beside_pictures;
};

struct Phi4MultimodalModel {
  const Phi4MultimodalFamily* config = nullptr;
  ScopeId model = 0, extend = 0;
  Decoder language;
  Phi4Images images;
  Phi4Clip clips;
  Linear head;
};

inline Phi4Clip make_phi4_clips(Context& c, const Phi4Audio& g, std::int64_t width) {
  Module m(c, "audio_embed", Part::projector);
  Phi4Clip r{.scope = m.scope};
  {
    Module e(c, "encoder", Part::audio);
    r.encoder = make_phi4_audio(c, g);
  }
  r.up = make_linear(c, "up_proj_for_speech", g.hidden, width, true);
  r.down = make_linear(c, "down_proj_for_speech", width, width, true);
  r.up_beside_pictures = make_linear(c, "up_proj_for_vision_speech", g.hidden, width, true);
  r.down_beside_pictures = make_linear(c, "down_proj_for_vision_speech", width, width, true);
  return r;
}

/// In the order of Phi4MultimodalModel.__init__ and Phi4MultimodalForCausalLM.__init__.
inline Phi4MultimodalModel make_model(Context& c, const Phi4MultimodalFamily& g) {
  Phi4MultimodalModel r{.config = &g};
  const std::int64_t hidden = width(g.language);
  {
    Module m(c, "model", Part::language);
    r.model = m.scope;
    r.language = make_decoder(c, g.language);
    Module e(c, "embed_tokens_extend", Part::projector);
    r.extend = e.scope;
    r.images = make_phi4_images(c, g.vision, hidden);
    r.clips = make_phi4_clips(c, g.audio, hidden);
  }
  r.head = make_head(c, hidden, vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

/// Inputs of a forward. Clips: audio_input_features[N, frames, mels], audio_embed_sizes int64[N] and, of more than one,
/// audio_attention_mask bool[N, frames].
struct Phi4MultimodalInputs {
  TextInputs text;
  Phi4Pixels pictures;
  Value features, sizes, frames;
};
inline Phi4MultimodalInputs make_inputs(Context& c, const Phi4MultimodalFamily& g, const Sequences& s) {
  Phi4MultimodalInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  const auto input = [&](const char* name, DType t, const Shape& shape) {
    return c.b.existing(name, Role::input, t, shape);
  };
  if (!s.images.empty()) {
    const auto n = static_cast<std::int64_t>(s.images.size());
    const Grid patches = s.images.front().patches;
    const std::int64_t rows = phi4_rows(s), patch = g.vision.patches.patch_size;
    r.pictures.pixels = input("image_pixel_values", c.dtype(),
                              {n, rows, g.vision.patches.channels, patches.rows * patch, patches.cols * patch});
    r.pictures.sizes = input("image_sizes", DType::int64, {n, 2});
    r.pictures.mask = input("image_attention_mask", DType::fp32, {n, rows, patches.rows, patches.cols});
  }
  if (s.audios.empty()) return r;
  const auto n = static_cast<std::int64_t>(s.audios.size());
  const AudioLayout& l = s.audios.front();
  r.features = input("audio_input_features", c.dtype(), {n, l.row_frames, l.mels});
  r.sizes = input("audio_embed_sizes", DType::int64, {n});
  if (n > 1) r.frames = input("audio_attention_mask", DType::boolean, {n, l.row_frames});
  return r;
}

/// Phi4MultimodalAudioEmbedding.forward: embeddings with the clips' features at their placeholders.
inline Value place_clips(Context& c, const Phi4MultimodalModel& m, const Phi4MultimodalInputs& in, const Value& embeds,
                         const Sequences& s) {
  using namespace eager;
  InScope scope(c.b, m.clips.scope);
  const Value places = nonzero(compare_scalar("eq.Scalar", in.text.ids), audio_feature_count(s.audios));
  const bool beside = static_cast<bool>(in.pictures.pixels);
  Value x = forward(c, m.clips.encoder, in.features, in.frames);
  x = forward(c, beside ? m.clips.up_beside_pictures : m.clips.up, x);
  x = unary(functions::gelu, x);
  const Value hidden = std::move(x);
  Value features = forward(c, beside ? m.clips.down_beside_pictures : m.clips.down, hidden);
  Value merged;
  {
    std::vector<Value> parts;
    for (std::size_t i = 0; i < s.audios.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      item(select(in.sizes, 0, at));
      parts.push_back(slice(select(features, 0, at), 0, 0, s.audios[i].llm_tokens));
    }
    merged = cat(parts, 0);
  }
  Value placed = index_put(embeds, select(places, 1, 0), select(places, 1, 1), merged);
  features.reset();  // the variable takes the result
  return placed;
}

/// Phi4MultimodalFeatureEmbedding.forward; `in` is none behind the first token.
inline Value placed_features(Context& c, const Phi4MultimodalModel& m, const Value& ids, const Value& embeds,
                             const Phi4MultimodalInputs* in, const Sequences* s) {
  using namespace eager;
  InScope scope(c.b, m.extend);
  const Value of_pictures = unsqueeze(compare_scalar("eq.Scalar", ids), -1);
  const Value elsewhere = pointwise("bitwise_not", DType::boolean, of_pictures);
  if (in == nullptr) return embeds;
  const auto any = [&] { item(reduce("any", DType::boolean, Shape{}, compare_scalar("eq.Scalar", ids))); };
  Value pictures, clips;
  if (in->pictures.pixels) {
    any();
    pictures = place_pictures(c, m.images, ids, embeds, in->pictures, *s);
  }
  if (in->features) {
    any();
    clips = place_clips(c, m, *in, embeds, *s);
  }
  if (!clips) return pictures ? pictures : embeds;
  if (!pictures) return clips;
  Value seen = mul(pictures, of_pictures), heard = mul(clips, elsewhere);
  return add(std::move(seen), std::move(heard));
}

/// Phi4MultimodalModel.forward: token ids, pixels and sound -> normed hidden states.
inline Value phi4_hidden(Context& c, const Phi4MultimodalModel& m, const TextInputs& text,
                         const Phi4MultimodalInputs* in, const Sequences* s, Cache& cache) {
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, text.ids);
  embeds = placed_features(c, m, text.ids, embeds, in, s);
  return forward(c, m.language, std::move(embeds), text.mask, cache);
}

/// Phi4MultimodalForCausalLM.forward over a fresh cache.
inline Value prefill(Context& c, const Phi4MultimodalModel& m, const Phi4MultimodalInputs& in, const Sequences& s,
                     Cache& cache) {
  const Value hidden = phi4_hidden(c, m, in.text, &in, &s, cache);
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const Phi4MultimodalModel& m, const TextInputs& in, Cache& cache) {
  const Value hidden = phi4_hidden(c, m, in, nullptr, nullptr, cache);
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
