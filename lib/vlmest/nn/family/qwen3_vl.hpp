// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/qwen3_vl_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>

namespace vlmest {

/// Qwen3-VL, dense and with experts (transformers models/qwen3_vl, models/qwen3_vl_moe): a tower over packed patches,
/// merged features of its last layer scattered into the embeddings, those of earlier layers added behind the decoder's
/// first layers, positions of three axes.
struct Qwen3VlFamily {
  Qwen3VlVision vision;
  Qwen3VlTextConfig language;
  bool tied = false;
};

struct Qwen3VlModel {
  const Qwen3VlFamily* config = nullptr;
  ScopeId root = 0, model = 0;
  Qwen3VlTower vision;
  Qwen3VlText language;
  Linear head;
};

inline Qwen3VlModel make_model(Context& c, const Qwen3VlFamily& g) {
  Qwen3VlModel r{.config = &g, .root = c.b.scope()};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "visual", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, r.language.embed_tokens);
  return r;
}

inline QwenVlInputs make_inputs(Context& c, const Qwen3VlFamily& g, const Sequences& s) {
  QwenVlInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (s.images.empty()) return r;
  r.images = make_packed_images(c, s.images, g.vision.channels, g.vision.frames, g.vision.patch_size);
  r.mrope.grid = r.images.grid;
  r.mrope.token_types = c.b.existing("mm_token_type_ids", Role::input, DType::int32, {s.batch, s.seq});
  r.mrope.deltas = c.b.existing("rope_deltas", Role::buffer, DType::int64, {s.batch, 1});
  return r;
}

/// modeling_qwen3_vl.py, Qwen3VLModel.get_image_features: the merged features of each image, split by sizes that the
/// host reads from the grid.
inline std::vector<Value> split_by_image(const Value& features, const Value& grid, const Sequences& s) {
  using namespace eager;
  Value sizes = floor_divide(reduce("prod.dim_int", DType::int64, {grid.size(0)}, grid));
  to_host(std::move(sizes));
  std::vector<std::int64_t> rows;
  for (const auto& i : s.images) rows.push_back(i.llm_tokens);
  return split(features, rows, 0);
}

/// modeling_qwen3_vl.py, Qwen3VLForConditionalGeneration.forward over a fresh cache; the inputs'
/// rope_deltas become this call's.
inline Value prefill(Context& c, const Qwen3VlModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Qwen3VlFeatures vision;  // variables of the function: alive until it returns
    Value features, positions;
    PlaceholderMasks masks;
    Deepstack deepstack;
    if (in.images.pixels) {
      vision = forward(c, m.vision, in.images, s.images);
      std::vector<Value> parts = split_by_image(vision.tower.pooled, in.images.grid, s);
      features = cat(parts, 0);
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
      deepstack.mask = select(masks.image, -1, 0);
      deepstack.selected = features.size(0);
      deepstack.features = vision.deepstack;
      positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    }
    hidden = forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
  }
  return forward(c, m.head, kept_positions(hidden, c.plan.logits));
}

/// One token over the cache. generate() passes position_ids[4, B, 1] (modeling_qwen3_vl.py,
/// _prepare_position_ids_for_generation: text positions, then the three axes).
inline Value decode(Context& c, const Qwen3VlModel& m, const TextInputs& in, Cache& cache) {
  using namespace eager;
  const Value positions = c.b.existing("position_ids", Role::input, DType::int64, {4, in.ids.size(0), in.ids.size(1)});
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, slice(positions, 0, 1, 4), in.mask, {}, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
