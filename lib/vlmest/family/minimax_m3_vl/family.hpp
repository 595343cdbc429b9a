// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include <vlmest/family/minimax_m3_vl/text.hpp>
#include <vlmest/family/minimax_m3_vl/tower.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>

namespace vlmest {

/// Two layers over each patch, then two over squares of them (transformers models/minimax_m3_vl,
/// MiniMaxM3VLMultiModalProjector).
struct MiniMaxM3Projector {
  std::int64_t in = 1280;
  std::int64_t hidden = 6144;  ///< projector_hidden_size
  std::int64_t out = 6144;
  std::int64_t merged = 4;  ///< patches of a square
};

/// MiniMax-M3 (transformers models/minimax_m3_vl): merged features of pictures and videos scattered into the
/// embeddings.
struct MiniMaxM3VlFamily {
  MiniMaxM3Vision vision;
  MiniMaxM3Projector projector;
  MiniMaxM3Text language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{};
};

/// The patches of all pictures of a call see each other, so that the tower on a few of them gives other features.
constexpr FamilyTraits traits(const MiniMaxM3VlFamily& g) {
  return {.features = FeatureCall{}, .frames = g.vision.frames, .videos = VideoPixels::own};
}

struct MiniMaxM3Projection {
  const MiniMaxM3Projector* config = nullptr;
  ScopeId scope = 0, activation_scope = 0, merge_activation_scope = 0;
  Linear in, out, merge_in, merge_out;
};

/// In the order of MiniMaxM3VLMultiModalProjector.__init__.
inline MiniMaxM3Projection make_projector(Context& c, const MiniMaxM3Projector& g) {
  MiniMaxM3Projection p{.config = &g, .scope = c.b.scope()};
  p.in = make_linear(c, "linear_1", g.in, g.hidden, true);
  p.activation_scope = c.b.child("act");
  p.out = make_linear(c, "linear_2", g.hidden, g.out, true);
  p.merge_in = make_linear(c, "merge_linear_1", checked_mul(g.out, g.merged), g.hidden, true);
  p.merge_activation_scope = c.b.child("merge_act");
  p.merge_out = make_linear(c, "merge_linear_2", g.hidden, g.out, true);
  return p;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLMultiModalProjector.forward: x[patches, in] -> [squares, out].
inline Value forward(Context& c, const MiniMaxM3Projection& p, const Value& x) {
  using namespace eager;
  InScope in(c.b, p.scope);
  const auto mlp = [&](const Linear& first, ScopeId activation, const Linear& second, const Value& of) {
    Value y = forward(c, first, of);
    {
      InScope a(c.b, activation);
      y = unary(functions::gelu, std::move(y));
    }
    return forward(c, second, std::move(y));
  };
  Value y = mlp(p.in, p.activation_scope, p.out, x);
  const std::int64_t squares = y.size(0) / p.config->merged;
  y = reshape(std::move(y), {squares, -1});
  return mlp(p.merge_in, p.merge_activation_scope, p.merge_out, y);
}

using MiniMaxM3VlModel = Assembly<MiniMaxM3VlFamily>;

inline PackedInputs make_inputs(Context& c, const MiniMaxM3VlFamily& g, const Sequences& s) {
  return make_packed_inputs(c, g.vision.channels, g.vision.frames, g.vision.patch_size, s);
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLModel.get_image_features and get_video_features: [features, width]. Throws
/// Error for chunks of the pictures.
inline Value tower_features(Context& c, const MiniMaxM3VlModel& m, const PackedImages& input,
                            std::span<const ImageLayout> images) {
  if (c.plan.vision_chunk > 0)
    throw Error("plan.vision_chunk",
                "MiniMax-M3's tower sees all pictures of a batch at once: parts have other features", "leave it out");
  const Value last = forward(c, m.vision, input, images);
  return forward(c, m.projector, eager::squeeze(last, 0));
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLModel.get_placeholder_mask, which every forward calls: both masks, and as many
/// elements of the embeddings below each as there are of features.
inline PlaceholderMasks seen_places(const Value& ids, const Value& embeds, const Value& images, const Value& videos) {
  using namespace eager;
  PlaceholderMasks m;
  m.image = compare_scalar("eq.Scalar", ids);
  m.video = compare_scalar("eq.Scalar", ids);
  const auto checked = [&](Value& mask, const Value& features) {
    Value count = sum_all(mask);
    mask = unsqueeze(std::move(mask), -1);
    if (features) check_features(embeds, mask, features.size(0), count);
    return count;
  };
  const Value image_count = checked(m.image, images);
  const Value video_count = checked(m.video, videos);
  return m;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3SparseForConditionalGeneration.forward over a fresh cache: the output carries
/// the features.
inline Value prefill(Context& c, const MiniMaxM3VlModel& m, const PackedInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, images, videos;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    if (in.images.pixels) {
      const ChunkRun call(c, 0, 1 + video_calls(s));
      images = tower_features(c, m, in.images, s.images);
    }
    if (in.videos.pixels) {
      const ChunkRun call = video_call(c, s);
      videos = tower_features(c, m, in.videos, s.videos);
    }
    const PlaceholderMasks masks = seen_places(in.text.ids, embeds, images, videos);
    if (images) embeds = masked_scatter(embeds, masks.image, images);
    if (videos) embeds = masked_scatter(embeds, masks.video, videos);
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const MiniMaxM3VlModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    const PlaceholderMasks masks = seen_places(in.ids, embeds, {}, {});
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
