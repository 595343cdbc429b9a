// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/perception_lm/projector.hpp>
#include <vlmest/family/perception_lm/tower.hpp>
#include <vlmest/nn/family/assembly.hpp>

namespace vlmest {

/// PerceptionLM (transformers 5.17 models/perception_lm): a Perception Encoder over tiles of pictures and frames of
/// videos, a projector that pools, features scattered into the embeddings.
struct PerceptionLmFamily {
  EvaVision vision;
  DecoderConfig language;
  std::int64_t pool = 1;  ///< projector_pooling_ratio
  bool tied = false;

  static constexpr AssemblyTraits assembly{.takes_videos = true};
};

/// Rows of pictures or frames, some at a time; both come through one function.
inline std::string perception_lm_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return image_features("pixel_values",
                        "torch.cat([f(pixel_values=p, **k).pooler_output for p in "
                        "pixel_values.flatten(0, 1).unsqueeze(0).split(" +
                            std::to_string(n) + ", 1)])");
}
constexpr FamilyTraits traits(const PerceptionLmFamily&) {
  return {.features = FeatureCall{perception_lm_line, true}, .videos = VideoPixels::own};
}

inline PerceptionProjector make_projector(Context& c, const PerceptionLmFamily& g) {
  return make_perception_projector(c, g.vision.hidden, width(g.language), g.pool);
}

using PerceptionLmModel = Assembly<PerceptionLmFamily>;

struct PerceptionLmInputs {
  TextInputs text;
  Value pixels;  ///< [pictures, tiles, channels, side, side]
  Value videos;  ///< [videos, frames, channels, side, side]
};

/// Throws Error for what the classes refuse: attention that the tower's has no version for, and pictures of one call
/// that have different numbers of tiles.
inline PerceptionLmInputs make_inputs(Context& c, const PerceptionLmFamily& g, const Sequences& s) {
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "timm's towers in transformers have no version for FlashAttention-2",
                "give plan.attention=sdpa");
  const auto input = [&](const char* name, const std::vector<ImageLayout>& of) -> Value {
    if (of.empty()) return {};
    for (const ImageLayout& l : of)
      if (l.tiles != of.front().tiles)
        throw Error("images",
                    "pictures of " + std::to_string(of.front().tiles) + " and of " + std::to_string(l.tiles) +
                        " tiles cannot stand in one batch: the processor makes one tensor of them",
                    "give pictures of one size, or of one aspect ratio");
    return c.b.existing(name, Role::input, c.dtype(),
                        {static_cast<std::int64_t>(of.size()), of.front().tiles, g.vision.channels, g.vision.image_size,
                         g.vision.image_size});
  };
  PerceptionLmInputs r;
  r.pixels = input("pixel_values", s.images);
  r.videos = input("pixel_values_videos", s.videos);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// PerceptionLMModel.get_image_features of rows[N, channels, side, side]. What the wrapper pooled is there until the
/// features take its place.
inline Value image_features(Context& c, const PerceptionLmModel& m, const Value& rows, const ImageLayout& one) {
  using namespace eager;
  const TowerOutput outputs = forward(c, m.vision, rows);
  Value states = outputs.last;
  if (m.config->vision.class_token) states = slice(states, 1, 1, states.size(1));
  states = insert_after_tower(c, std::move(states));
  return insert_after_projector(c, forward(c, m.projector, states),
                                checked_mul(rows.size(0), one.llm_tokens / one.tiles));
}

/// Calls of the tower on rows of so many pictures or frames.
inline std::size_t tower_calls(const Context& c, const std::vector<ImageLayout>& of) {
  if (of.empty()) return 0;
  std::int64_t rows = 0;
  for (const ImageLayout& l : of) rows = checked_add(rows, l.tiles);
  return c.plan.vision_chunk == 0 ? 1 : chunk_lengths(static_cast<std::size_t>(rows), c.plan.vision_chunk).size();
}

/// The features of all pictures or videos, at once or in chunks; `before` of `calls` calls of the tower come first.
inline Value features_of(Context& c, const PerceptionLmModel& m, const Value& pixels,
                         const std::vector<ImageLayout>& of, std::size_t before, std::size_t calls) {
  using namespace eager;
  const Value rows = flatten(pixels, 0, 1);
  const auto called = [&](const Value& part) {
    const ChunkRun one(c, before++, calls);
    return image_features(c, m, part, of.front());
  };
  if (c.plan.vision_chunk == 0) return called(rows);
  std::vector<Value> all;
  for (const Value& part : split(rows, chunk_lengths(static_cast<std::size_t>(rows.size(0)), c.plan.vision_chunk), 0))
    all.push_back(called(part));
  return cat(all, 0);
}

/// PerceptionLMForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const PerceptionLmModel& m, const PerceptionLmInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  const std::size_t of_images = tower_calls(c, s.images), calls = of_images + tower_calls(c, s.videos);
  Value hidden, features, videos;  // the output carries the features of both
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    Value video_mask;
    if (in.pixels) {
      features = features_of(c, m, in.pixels, s.images, 0, calls);
      features = to(features, embeds.dtype());
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
    }
    if (in.videos) {
      videos = features_of(c, m, in.videos, s.videos, of_images, calls);
      videos = to(videos, embeds.dtype());
      video_mask = video_placeholder_mask(in.text.ids, masks);
      embeds = masked_scatter(embeds, video_mask, videos);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
