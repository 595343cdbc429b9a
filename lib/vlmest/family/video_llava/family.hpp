// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/one_token.hpp>
#include <vlmest/nn/family/videos.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest {

/// Video-LLaVA (transformers 5.17 models/video_llava): a tower for pictures and one for frames, of one config, before
/// one projector.
struct VideoLlavaFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = true;                        ///< vision_feature_select_strategy "default", of pictures
  bool tied = false;
};

inline std::string video_llava_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return image_features("pixel_values_images",
                        "torch.cat([f(p, **k).pooler_output for p in " + split("pixel_values_images", n) + "])");
}
constexpr FamilyTraits traits(const VideoLlavaFamily&) {
  return {.features = FeatureCall{video_llava_line}, .videos = VideoPixels::own};
}

struct VideoLlavaModel {
  const VideoLlavaFamily* config = nullptr;
  ScopeId model = 0;
  VisionTower video_tower, image_tower;
  Mlp2 projector;
  Decoder language;
  Linear head;
};

/// In the order of VideoLlavaModel.__init__ and VideoLlavaForConditionalGeneration.__init__.
inline VideoLlavaModel make_model(Context& c, const VideoLlavaFamily& g) {
  VideoLlavaModel r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    const auto tower = [&](const char* name) {
      Module v(c, name, Part::vision);
      return make_tower(c, g.vision);
    };
    r.video_tower = tower("video_tower");
    r.image_tower = tower("image_tower");
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector = make_projector(c, g.projector);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct VideoLlavaInputs {
  TextInputs text;
  Value pixels;  ///< pixel_values_images [images, channels, side, side]
  Value videos;  ///< pixel_values_videos [videos, frames, channels, side, side]
};

inline VideoLlavaInputs make_inputs(Context& c, const VideoLlavaFamily& g, const Sequences& s) {
  VideoLlavaInputs r;
  if (!s.images.empty())
    r.pixels = c.b.existing("pixel_values_images", Role::input, c.dtype(), pixel_shape(g.vision, s.images));
  r.videos = make_video_pixels(c, g.vision, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

inline std::vector<VisionChunk<VideoLlavaInputs>> vision_chunks(Context& c, const VideoLlavaInputs& in,
                                                                const Sequences& s) {
  return cut_rows(c, in, s, s.images);
}

/// modeling_video_llava.py, VideoLlavaModel.get_image_features: the class token leaves each state before they are put
/// side by side.
inline Value image_features(Context& c, const VideoLlavaModel& m, const VideoLlavaInputs& in, const Sequences& s) {
  using namespace eager;
  const VideoLlavaFamily& g = *m.config;
  const TowerOutput tower = forward(c, m.image_tower, {in.pixels, s.images, true, {}, g.feature_layers});
  const auto pick = [&](std::int64_t layer) {
    const Value& h = hidden_state(tower, layer);
    return g.drop_first ? slice(h, 1, 1, h.size(1)) : h;
  };
  Value selected;
  if (g.layer_list) {
    std::vector<Value> pool;
    for (const std::int64_t l : g.feature_layers) pool.push_back(pick(l));
    selected = cat(pool, -1);
  } else {
    selected = pick(g.feature_layers.front());
  }
  selected = insert_after_tower(c, std::move(selected));
  return insert_after_projector(c, forward(c, m.projector, selected), feature_count(s.images));
}

/// The features of all pictures, at once or in chunks. Frames have a tower of their own, so that no call of this one
/// comes behind them.
inline Value picture_features(Context& c, const VideoLlavaModel& m, const VideoLlavaInputs& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) return image_features(c, m, in, s);
  return in_chunks(c, vision_chunks(c, in, s),
                   [&](const auto& chunk) { return image_features(c, m, chunk.inputs, chunk.sequences); });
}

/// modeling_video_llava.py, VideoLlavaModel.get_video_features.
inline Value video_features(Context& c, const VideoLlavaModel& m, const Value& pixels, const Sequences& s) {
  using namespace eager;
  const VideoLlavaFamily& g = *m.config;
  const Value rows = reshape(pixels, {pixels.size(0) * pixels.size(1), pixels.size(2), pixels.size(3), pixels.size(4)});
  const TowerOutput tower = forward(c, m.video_tower, {rows, s.videos, true, {}, g.feature_layers});
  const Value selected = selected_states(tower, g.feature_layers, g.layer_list);
  return forward(c, m.projector, selected);
}

/// modeling_video_llava.py, VideoLlavaForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const VideoLlavaModel& m, const VideoLlavaInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden, features, videos;  // the output carries the features of both
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    Value video_mask;
    if (in.pixels) {
      features = picture_features(c, m, in, s);
      features = to(features, embeds.dtype());
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
    }
    if (in.videos) {
      videos = video_features(c, m, in.videos, s);
      videos = to(videos, embeds.dtype());
      video_mask = video_placeholder_mask(in.text.ids, masks);
      embeds = masked_scatter(embeds, video_mask, videos);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const VideoLlavaModel& m, const TextInputs& in, Cache& cache) {
  return decode_one_token(c, m, in, cache);
}

}  // namespace vlmest
