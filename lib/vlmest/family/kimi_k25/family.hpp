// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/moonvit.hpp>

namespace vlmest {

/// A norm of each patch, then two layers over those that are merged (transformers models/kimi_k25,
/// Kimi_K25MultimodalProjection).
struct KimiK25Projector {
  std::int64_t in = 1152;   ///< projection_hidden_size, the tower's width
  std::int64_t merged = 4;  ///< patches in a row
  std::int64_t out = 7168;
};

/// Kimi-K2.5 and later (transformers models/kimi_k25): MoonViT-3D, features scattered into the embeddings.
struct KimiK25Family {
  MoonVit vision;
  KimiK25Projector projector;
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

struct KimiK25Projection {
  const KimiK25Projector* config = nullptr;
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear in, out;
};

/// In the order of Kimi_K25MultimodalProjection.__init__.
inline KimiK25Projection make_projector(Context& c, const KimiK25Projector& g) {
  KimiK25Projection p{.config = &g, .scope = c.b.scope()};
  const std::int64_t row = checked_mul(g.in, g.merged);
  p.norm = make_layer_norm(c, "pre_norm", g.in);
  p.in = make_linear(c, "in_proj", row, row, true);
  p.activation_scope = c.b.child("act");
  p.out = make_linear(c, "out_proj", row, g.out, true);
  return p;
}

/// modeling_kimi_k25.py, Kimi_K25MultimodalProjection.forward: x[rows, merged, in] -> [rows, 1, out].
inline Value forward(Context& c, const KimiK25Projection& p, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, p.scope);
  x = view(forward(c, p.norm, x), {x.size(0), -1, checked_mul(p.config->in, p.config->merged)});
  x = forward(c, p.in, x);
  {
    InScope a(c.b, p.activation_scope);
    x = unary(functions::gelu, x);
  }
  return forward(c, p.out, x);
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
