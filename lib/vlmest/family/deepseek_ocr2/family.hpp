// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/deepseek_ocr2/rule.hpp>
#include <vlmest/family/deepseek_ocr2/tower.hpp>
#include <vlmest/nn/decoder/deepseek_moe.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/local_views.hpp>

namespace vlmest {

/// DeepSeek-OCR-2 (transformers models/deepseek_ocr2): its tower over the whole picture and over its tiles, a linear
/// layer, DeepSeek-V2's experts.
struct DeepseekOcr2Family {
  DeepseekOcr2Vision vision;
  DeepseekMoeConfig language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.newline = "view_separator", .newline_last = true};
};

inline Linear make_projector(Context& c, const DeepseekOcr2Family& g) {
  return declare_linear(c, g.vision.encoder.hidden, width(g.language), true);
}

constexpr FamilyTraits traits(const DeepseekOcr2Family&) { return {.features = feature_calls::local_views}; }

using DeepseekOcr2Model = Assembly<DeepseekOcr2Family>;

inline LocalViewInputs make_inputs(Context& c, const DeepseekOcr2Family& g, const Sequences& s) {
  return make_local_view_inputs(c, s, g.vision.sam.channels, g.vision.sam.patch_size);
}

/// modeling_deepseek_ocr2.py, DeepseekOcr2Model.get_image_features: of each image its tiles' features, those of the
/// whole view, the separator.
inline std::vector<Value> image_features(Context& c, const DeepseekOcr2Model& m, const LocalViewInputs& in,
                                         const Sequences& s) {
  using namespace eager;
  if (in.counts) to_host(in.counts);
  const std::size_t calls = in.local ? 2 : 1;
  const auto features = [&](std::size_t call, const Value& pixels, Value& states) {
    {
      const ChunkRun one(c, call, calls);
      states = forward(c, m.vision, pixels);
    }
    return forward(c, m.projector, states);
  };
  Value global_states, local_states;
  const Value global = features(0, in.pixels, global_states);
  Value local;
  std::vector<Value> tiles;
  if (in.local) {
    local = features(1, in.local, local_states);
    tiles = split(local, local_counts(s), 0);
  }
  const Value separator = unsqueeze(Value(c.b, m.newline), 0);
  const std::int64_t channels = global.size(-1);
  std::vector<Value> all;
  Value whole, flat;  // variables of the loop
  for (std::size_t i = 0; i < s.images.size(); ++i) {
    whole = reshape(select(global, 0, static_cast<std::int64_t>(i)), {-1, channels});
    std::vector<Value> parts;
    if (in.local) {
      flat = reshape(tiles[i], {-1, channels});
      parts.push_back(flat);
    }
    parts.push_back(whole);
    parts.push_back(separator);
    all.push_back(cat(parts, 0));
  }
  return all;
}

}  // namespace vlmest
