// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include <vlmest/family/ovis2/tower.hpp>
#include <vlmest/graph/eager/selection.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/feature_calls.hpp>

namespace vlmest {

/// Ovis2 (transformers 5.17 models/ovis2): a picture's tokens are mixtures of the rows of a table of visual words; the
/// table's last rows stand for where tiles begin and end.
struct Ovis2Family {
  Ovis2Vision vision;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.projector = nullptr};
};

/// The tower is what is called on parts of the pixels.
inline std::string ovis2_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return "from transformers.modeling_outputs import BaseModelOutputWithPooling; " +
         wrapped("model.model.vision_tower.forward", "pixel_values",
                 "BaseModelOutputWithPooling(pooler_output=torch.cat([f(p, **k).pooler_output for p in " +
                     split("pixel_values", n) + "]))");
}
constexpr FamilyTraits traits(const Ovis2Family&) { return {.features = FeatureCall{ovis2_line, true}}; }

using Ovis2Model = Assembly<Ovis2Family>;

/// visual_embeddings_table.
inline Embedding make_behind(Context& c, const Ovis2Family& g) {
  Module m(c, "visual_embeddings_table", Part::projector);
  const TensorId weight = parameter(c, "weight", {g.vision.words, width(g.language)});
  c.b.graph.embeddings.push_back(weight);
  return {.scope = m.scope, .weight = weight};
}

inline PixelInputs make_inputs(Context& c, const Ovis2Family& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// What chunks of the tower give.
inline Value image_features(Context& c, const Ovis2Model& m, const PixelInputs& in, const Sequences&) {
  return forward(c, m.vision, in.pixels).weights;
}

/// What Ovis2Model.forward keeps of get_image_features until it returns.
struct Ovis2Features {
  VisualTokens tokens;
  Value features;    ///< [N, squares, hidden]
  Value indicators;  ///< the table's last rows
};

/// modeling_ovis2.py, Ovis2Model.get_image_features.
inline Ovis2Features visual_features(Context& c, const Ovis2Model& m, const PixelInputs& in, const Sequences& s) {
  using namespace eager;
  const Ovis2Vision& g = m.config->vision;
  Ovis2Features r;
  if (c.plan.vision_chunk > 0)
    r.tokens.weights = batch_features(c, m, in, s);
  else
    r.tokens = forward(c, m.vision, in.pixels);
  const Value& weights = r.tokens.weights;
  const Value padding = fill(c.b, "zeros", {weights.size(0), weights.size(1), g.indicators}, weights.dtype());
  Value x = cat(weights, padding, 2);
  {
    InScope table(c.b, m.behind.scope);
    x = matmul_rows(x, Value(c.b, m.behind.weight));
  }
  const Value ids = from_host(c.b, {g.indicators}, DType::int64, "_to_copy");
  r.tokens.weights = {};
  r.features = x;
  r.indicators = forward(c, m.behind, ids);
  return r;
}

/// How often each indicator stands in the batch, in the order of visual_indicator_token_ids: where a picture begins and
/// where its tiles do, between tiles, between rows of them, where it ends (processing_ovis2.py, replace_image_token).
inline std::array<std::int64_t, 5> indicator_counts(const Context& c, const Sequences& s) {
  std::array<std::int64_t, 5> n{};
  if (!c.plan.markers) return n;
  for (const ImageLayout& i : s.images) {
    for (const std::size_t k : {0, 1, 4}) ++n[k];
    n[2] += i.tile_grid.rows * (i.tile_grid.cols - 1);
    n[3] += i.tile_grid.rows - 1;
  }
  return n;
}

/// modeling_ovis2.py, Ovis2Model.forward and Ovis2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Ovis2Model& m, const PixelInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, kept;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Ovis2Features visual;
    Value image_mask, mask;
    if (in.pixels) {
      visual = visual_features(c, m, in, s);
      image_mask = placeholder_mask(in.text.ids);
      visual.features = to(visual.features, embeds.dtype());
      kept = visual.features;
      embeds = masked_scatter(embeds, image_mask, visual.features);
      const auto counts = indicator_counts(c, s);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        mask = compare_scalar("eq.Scalar", in.text.ids);
        item(reduce("any", DType::boolean, Shape{}, mask));
        if (counts[i] > 0)
          embeds = masked_index_put_(std::move(embeds), mask,
                                     select(visual.indicators, 0, static_cast<std::int64_t>(i)), counts[i]);
      }
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
