// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/ernie4_5_vl_moe/resampler.hpp>
#include <vlmest/family/ernie4_5_vl_moe/text.hpp>
#include <vlmest/family/ernie4_5_vl_moe/tower.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>

namespace vlmest {

/// ERNIE 4.5 VL (transformers models/ernie4_5_vl_moe): Qwen2-VL's assembly with a resampler behind the tower and
/// experts that are told which tokens are seen.
struct Ernie4_5VlFamily {
  Ernie4_5Vision vision;
  Ernie4_5TextConfig language;
  ResamplerConfig resampler;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.projector = nullptr, .language_first = true};
};
constexpr FamilyTraits traits(const Ernie4_5VlFamily& g) {
  return {.features = feature_calls::packed, .frames = g.vision.frames, .videos = VideoPixels::own};
}

inline Resampler make_behind(Context& c, const Ernie4_5VlFamily& g) { return make_resampler(c, g.resampler); }

using Ernie4_5VlModel = Assembly<Ernie4_5VlFamily>;

struct Ernie4_5VlInputs {
  TextInputs text;
  PackedImages images, videos;
  MropeInputs mrope;
  SeenTokens seen;
};

inline Ernie4_5VlInputs make_inputs(Context& c, const Ernie4_5VlFamily& g, const Sequences& s) {
  QwenVlInputs q = make_qwen_inputs(c, g.vision, s);
  Ernie4_5VlInputs r{.text = q.text, .images = q.images, .videos = q.videos, .mrope = q.mrope};
  r.seen.count = seen_tokens(s);
  if (r.seen.count > 0)
    r.seen.types = c.b.existing("moe_mm_token_type_ids", Role::input, DType::int64, {s.batch, s.seq});
  return r;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeModel.get_image_features.
inline std::vector<Value> image_features(Context& c, const Ernie4_5VlModel& m, const PackedImages& input,
                                         const Sequences& s) {
  const Value tower = forward(c, m.vision, input, s.images);
  const Value features = forward(c, m.behind, tower, input.grid, s.images);
  return split_by_grid(features, input.grid, s.images);
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeModel.get_video_features: the grid counts each frame, of which two are
/// one.
inline std::vector<Value> video_features(Context& c, const Ernie4_5VlModel& m, const PackedImages& input,
                                         const Sequences& s) {
  using namespace eager;
  const ChunkRun call = video_call(c, s);
  const Value tower = forward(c, m.vision, input, s.videos);
  const Value features = forward(c, m.behind, tower, input.grid, s.videos);
  Value sizes = floor_divide(reduce("prod.dim_int", DType::int64, {input.grid.size(0)}, input.grid));
  sizes = floor_divide(std::move(sizes));
  to_host(std::move(sizes));
  return split(features, feature_counts(s.videos), 0);
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeForConditionalGeneration.forward over a fresh cache; the inputs'
/// rope_deltas become this call's.
inline Value prefill(Context& c, const Ernie4_5VlModel& m, Ernie4_5VlInputs& in, const Sequences& s, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value positions;  // variables of the function: alive until it returns
    PlacedFeatures placed;
    if (in.images.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
    if (in.videos.pixels) place_videos(embeds, in.text.ids, video_features(c, m, in.videos, s), placed);
    if (in.mrope.token_types)
      positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge, ResamplerConfig::temporal);
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache, in.seen);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache, which is text.
inline Value decode(Context& c, const Ernie4_5VlModel& m, const TextInputs& in, Cache& cache) {
  return decode_on_axes(c, m, in, cache);
}

}  // namespace vlmest
