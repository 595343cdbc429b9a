// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/step3p7/rule.hpp>
#include <vlmest/family/step3p7/text.hpp>
#include <vlmest/family/step3p7/tower.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/local_views.hpp>

namespace vlmest {

/// Step-3.7 (transformers 5.17 models/step3p7): its tower over the whole view of each picture and over its tiles, a
/// linear layer, and its language model.
struct Step3p7Family {
  Step3p7Vision vision;
  Step3p7Text language;
  bool projector_bias = false;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.vision = "vision_model", .projector_last = true};
};

inline Linear make_projector(Context& c, const Step3p7Family& g) {
  return declare_linear(c, g.vision.features(), width(g.language), g.projector_bias);
}

constexpr FamilyTraits traits(const Step3p7Family&) { return {.features = feature_calls::local_views}; }

using Step3p7Model = Assembly<Step3p7Family>;

/// Throws Error for attention that the class has no version for.
inline LocalViewInputs make_inputs(Context& c, const Step3p7Family& g, const Sequences& s) {
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "transformers' class of Step-3.7 has no version for FlashAttention-2",
                "give plan.attention=sdpa");
  return make_local_view_inputs(c, s, g.vision.channels, g.vision.patch_size);
}

/// Step3p7Model.get_image_features: of each picture its tiles' features, then those of the whole view. Python's numbers
/// of tiles are on the device, where the processor's call left them: each comparison and each bound of a slice is read
/// from there.
inline std::vector<Value> image_features(Context& c, const Step3p7Model& m, const LocalViewInputs& in,
                                         const Sequences& s) {
  using namespace eager;
  const std::size_t calls = in.local ? 2 : 1;
  const auto states = [&](std::size_t call, const Value& pixels) {
    const ChunkRun one(c, call, calls);
    return forward(c, m.vision, pixels);
  };
  const Value of_views = states(0, in.pixels);
  const Value views = forward(c, m.projector, of_views);
  Value local;
  if (in.local) local = forward(c, m.projector, states(1, in.local));
  const std::int64_t channels = views.size(-1);
  std::vector<Value> merged;
  Value first, tiles;  // variables of the loop: where a picture's tiles begin
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < s.images.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t n = image_processor::local_tiles(s.images[i]);
    Value count;
    if (in.counts) {
      count = select(in.counts, 0, at);
      item(compare_scalar("gt.Scalar", count));
    }
    std::vector<Value> parts;
    if (n > 0) {
      if (count) {
        const Value end = first ? add(first, count) : add_scalar(count);
        if (first) item(first);
        item(end);
      }
      tiles = slice_view(local, 0, begin, begin + n);
      parts.push_back(view(tiles, {-1, channels}));
    }
    parts.push_back(view(select(views, 0, at), {-1, channels}));
    if (count) first = first ? add_(std::move(first), count) : add_scalar(count);
    begin += n;
    merged.push_back(parts.size() > 1 ? cat(parts, 0) : parts.front());
  }
  return merged;
}

}  // namespace vlmest
