// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/projector/merged_mlp.hpp>
#include <vlmest/nn/vision/moonvit.hpp>

namespace vlmest {

/// Kimi-K2.5 and later (transformers models/kimi_k25): MoonViT-3D, features scattered into the embeddings.
struct KimiK25Family {
  MoonVit vision;
  MergedMlp projector{};
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.projector = "mm_projector", .projector_last = true, .takes_videos = true};
};

constexpr FamilyTraits traits(const KimiK25Family&) {
  return {.features = feature_calls::packed,
          .frames = 1,
          .no_videos =
              "modeling_kimi_k25.py, get_image_features, counts the features of every frame, which are "
              "averaged over the frames before, and fails"};
}

inline MergedMlpLayers make_projector(Context& c, const MergedMlp& g) {
  return make_merged_mlp(c, g, "in_proj", "out_proj");
}

/// modeling_kimi_k25.py, Kimi_K25MultimodalProjection.forward: x[rows, merged, in] -> [rows, 1, out].
inline Value forward(Context& c, const MergedMlpLayers& p, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, p.scope);
  const Shape rows{x.size(0), -1, p.config->row()};
  return project_rows(c, p, std::move(x), rows);
}

using KimiK25Model = Assembly<KimiK25Family>;

struct KimiK25Inputs {
  TextInputs text;
  PackedImages images;
};

inline KimiK25Inputs make_inputs(Context& c, const KimiK25Family& g, const Sequences& s) {
  KimiK25Inputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (!s.images.empty()) r.images = make_square_patches(c, g.vision, s.images);
  return r;
}

/// modeling_kimi_k25.py, Kimi_K25Model.get_image_features.
inline std::vector<Value> image_features(Context& c, const KimiK25Model& m, const PackedImages& input,
                                         const Sequences& s) {
  using namespace eager;
  const TowerOutput tower = forward(c, m.vision, input, s.images);
  const Value features = squeeze(forward(c, m.projector, tower.pooled), 1);
  return split_by_grid(features, input.grid, s.images);
}

/// The ids that are embedded, 0 in the place of placeholders, and where those are. A forward holds both to its end.
struct TextIds {
  Value placeholders, ids;
};
inline TextIds text_ids(const Value& input_ids) {
  using namespace eager;
  TextIds t;
  Value images = compare_scalar("eq.Scalar", input_ids);
  Value videos = compare_scalar("eq.Scalar", input_ids);
  t.placeholders = pointwise("bitwise_or.Tensor", DType::boolean, std::move(images), std::move(videos));
  t.ids = clone(input_ids);
  t.ids = pointwise_("index_put_", std::move(t.ids), t.placeholders);
  return t;
}

/// modeling_kimi_k25.py, Kimi_K25ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const KimiK25Model& m, const KimiK25Inputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    const TextIds text = text_ids(in.text.ids);
    Value embeds = embed(c, m.language, text.ids);
    PlacedFeatures placed;
    if (in.images.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const KimiK25Model& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    const TextIds text = text_ids(in.ids);
    Value embeds = embed(c, m.language, text.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
