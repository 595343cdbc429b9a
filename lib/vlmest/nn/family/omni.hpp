// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <vlmest/nn/family/audio_inputs.hpp>
#include <vlmest/nn/family/omni_positions.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>

/// What the thinkers of Qwen2.5-Omni and Qwen3-Omni share (transformers 5.17, modeling_qwen2_5_omni.py and
/// modeling_qwen3_omni_moe.py): sound, pictures and videos scattered into the embeddings one after the other by a
/// class that has no inner model.
namespace vlmest {

/// What has get_image_features in a model of that model_type: the thinker, which the whole model holds.
inline std::string omni_owner(const std::string& type) {
  return type.ends_with("_thinker") ? "model" : "model.thinker";
}

/// A thinker: a family is an aggregate with `audio`, `vision`, `language` and `tied`.
template <class Family>
struct OmniModel {
  template <class Config>
  using Tower = decltype(make_tower(std::declval<Context&>(), std::declval<const Config&>()));

  const Family* config = nullptr;
  Tower<decltype(Family::audio)> audio;
  Tower<decltype(Family::vision)> vision;
  decltype(make_decoder(std::declval<Context&>(), std::declval<const Family&>().language)) language;
  Linear head;
};

/// In the order of …OmniThinkerForConditionalGeneration.__init__.
template <class Family>
OmniModel<Family> make_omni_model(Context& c, const Family& g) {
  OmniModel<Family> r{.config = &g};
  {
    Module a(c, "audio_tower", Part::audio);
    r.audio = make_tower(c, g.audio);
  }
  {
    Module v(c, "visual", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  {
    Module l(c, "model", Part::language);
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

/// Inputs of a forward. A prompt without pictures and videos counts its positions by the mask alone.
struct OmniInputs {
  TextInputs text;
  AudioInputs audio;
  PackedImages images, videos;
  Value seconds;  ///< video_second_per_grid, fp32[videos], on the host until it is read
  Value deltas;   ///< rope_deltas, replaced by each call's
};

template <class Vision>
OmniInputs make_omni_inputs(Context& c, const Vision& vision, const Sequences& s, DType positions) {
  OmniInputs r;
  r.audio = make_audio_inputs(c, s, "feature_attention_mask");
  const auto packed = [&](std::span<const ImageLayout> of, bool videos) {
    return make_packed_images(c, of, vision.channels, vision.frames, vision.patch_size, videos);
  };
  if (!s.images.empty()) r.images = packed(s.images, false);
  if (!s.videos.empty()) r.videos = packed(s.videos, true);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.deltas = c.b.existing("rope_deltas", Role::buffer, positions, {s.batch, 1});
  return r;
}

/// get_audio_features up to the tower: the frames that show something, [mels, frames], a view, and their numbers
/// int64[clips].
struct HeardFrames {
  Value features, lengths;
};
inline HeardFrames heard_frames(const AudioInputs& in, std::span<const AudioLayout> clips) {
  using namespace eager;
  HeardFrames r;
  r.lengths = sum(in.mask, 1, false);
  std::int64_t frames = 0;
  for (const AudioLayout& l : clips) frames = checked_add(frames, l.frames);
  Value shown = to(in.mask, DType::boolean);
  r.features = masked_index(permute(in.features, {0, 2, 1}), std::move(shown), frames);
  r.features = permute(std::move(r.features), {1, 0});
  return r;
}

/// get_placeholder_mask: masks of pictures, videos and sound, of which the first two are counted, and one of these held
/// against its features.
struct OmniMasks {
  Value image, video, audio;
};
enum class Checked : std::uint8_t { nothing, images, videos };
inline OmniMasks omni_masks(const Value& ids, Checked checked) {
  using namespace eager;
  OmniMasks m;
  m.image = compare_scalar("eq.Scalar", ids);
  m.video = compare_scalar("eq.Scalar", ids);
  m.audio = compare_scalar("eq.Scalar", ids);
  const Value images = sum_all(m.image);
  m.image = unsqueeze(std::move(m.image), -1);
  if (checked == Checked::images) check_feature_count(images);
  const Value videos = sum_all(m.video);
  m.video = unsqueeze(std::move(m.video), -1);
  if (checked == Checked::videos) check_feature_count(videos);
  m.audio = unsqueeze(std::move(m.audio), -1);
  return m;
}

/// What the thinker's forward holds until it returns. `unread` is Python's _, which each call binds again.
struct OmniPlaced {
  Value audio, images, videos, audio_mask, image_mask, video_mask, unread, lengths;
};

inline void place_audio(Value& embeds, const Value& ids, Value features, OmniPlaced& p) {
  using namespace eager;
  p.audio = to(std::move(features), embeds.dtype());
  OmniMasks m = omni_masks(ids, Checked::nothing);
  p.unread = std::move(m.video);
  m.image.reset();
  p.audio_mask = std::move(m.audio);
  embeds = masked_scatter(embeds, p.audio_mask, p.audio);
}
inline void place_pictures(Value& embeds, const Value& ids, std::vector<Value> parts, OmniPlaced& p) {
  using namespace eager;
  p.images = to(cat(parts, 0), embeds.dtype());
  OmniMasks m = omni_masks(ids, Checked::images);
  p.image_mask = std::move(m.image);
  p.unread = std::move(m.audio);
  m.video.reset();
  embeds = masked_scatter(embeds, p.image_mask, p.images);
}
inline void place_frames(Value& embeds, const Value& ids, std::vector<Value> parts, OmniPlaced& p) {
  using namespace eager;
  p.videos = to(cat(parts, 0), embeds.dtype());
  OmniMasks m = omni_masks(ids, Checked::videos);
  p.video_mask = std::move(m.video);
  p.unread = std::move(m.audio);
  m.image.reset();
  embeds = masked_scatter(embeds, p.video_mask, p.videos);
}

/// Logits of all positions, whatever the plan asks for, or the loss.
inline Value all_positions(Context& c, const Linear& head, const Value& hidden) {
  return c.labels ? head_output(c, head, hidden) : forward(c, head, hidden);
}

/// One token over the cache; generate() passes position_ids[4, B, 1].
template <class Model>
Value omni_decode(Context& c, const Model& m, const TextInputs& in, Cache& cache) {
  using namespace eager;
  const Value positions = c.b.existing("position_ids", Role::input, DType::int64, {4, in.ids.size(0), in.ids.size(1)});
  Value embeds = embed(c, m.language, in.ids);
  const Value hidden = forward(c, m.language, embeds, slice(positions, 0, 1, 4), in.mask, cache);
  return forward(c, m.head, hidden);
}

}  // namespace vlmest
