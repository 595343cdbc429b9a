// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/decoder/hunyuan.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/hunyuan_vl.hpp>

namespace vlmest {

/// HunYuan-VL (transformers models/hunyuan_vl): SigLIP's layers with a merger of convolutions, its features scattered
/// into the embeddings of HunYuan's dense layers, positions of three axes or four.
struct HunYuanFamily {
  HunYuanVision vision;
  HunYuanTextConfig language;
  bool tied = true;
};
/// Patches of all pictures in rows and their grid, by position; the features of all in one tensor [1, tokens, width].
inline std::string hunyuan_line(const std::string&, std::int64_t n) {
  return feature_calls::image_features(
      "pixel_values, grid", "torch.cat([f(p, g, **k).pooler_output " + feature_calls::packed_pairs(n) + "], 1)");
}
constexpr FamilyTraits traits(const HunYuanFamily&) { return {.features = FeatureCall{hunyuan_line}, .frames = 1}; }

struct HunYuanModel {
  const HunYuanFamily* config = nullptr;
  ScopeId model = 0;
  HunYuanText language;
  HunYuanTower vision;
  Linear head;
};

/// In the order of HunYuanVLModel.__init__ and HunYuanVLForConditionalGeneration.__init__: the tower comes last.
inline HunYuanModel make_model(Context& c, const HunYuanFamily& g) {
  HunYuanModel r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    Module v(c, "vision_tower", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

inline QwenVlInputs make_inputs(Context& c, const HunYuanFamily& g, const Sequences& s) {
  QwenVlInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (s.images.empty()) return r;
  r.images = make_packed_images(c, s.images, g.vision.channels, 1, g.vision.patch_size);
  r.mrope.token_types = c.b.existing("mm_token_type_ids", Role::input, DType::int32, {s.batch, s.seq});
  r.mrope.grid = r.images.grid;
  r.mrope.deltas = c.b.existing("rope_deltas", Role::buffer, DType::int64, {s.batch, 1});
  return r;
}

/// modeling_hunyuan_vl.py, HunYuanVLModel.get_vision_position_ids: int64[2, rows * (columns + 1)] of a picture, columns
/// first; `sides` are its rows and columns of patches on the GPU.
inline Value hunyuan_grid_positions(Context& c, const Value& sides, Grid merged) {
  using namespace eager;
  item(select(sides, 0, 0));
  item(select(sides, 0, 1));
  const std::int64_t wide = merged.cols + 1;
  Value row = arange(c.b, merged.rows), col = arange(c.b, wide);
  const Value rows = expand(view(std::move(row), {merged.rows, 1}), {merged.rows, wide});
  const Value cols = expand(view(std::move(col), {1, wide}), {merged.rows, wide});
  std::array<Value, 2> axes{reshape(cols, {-1}), reshape(rows, {-1})};
  return stack(axes, 0);
}

/// modeling_hunyuan_vl.py, HunYuanVLModel.get_rope_index: positions int64[axes, B, S]; leaves the new deltas in `in`.
inline Value hunyuan_rope_index(Context& c, const QwenVlInputs& in, MropeInputs& mrope, const Sequences& s,
                                const HunYuanFamily& g) {
  using namespace eager;
  const auto axes = static_cast<std::int64_t>(g.language.sections.size());
  Value positions = fill(c.b, "zeros", {axes, s.batch, in.text.ids.size(1)}, DType::int64);
  std::vector<Value> deltas;
  Value ids, types, valid, current, grid;  // variables of the loop: each lives until it is bound again
  const std::size_t each = s.images.size() / static_cast<std::size_t>(s.batch);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t tokens = s.length(b);
    types = select(mrope.token_types, 0, b);
    ids = select(in.text.ids, 0, b);
    valid.reset();
    valid = to(select(in.text.mask, 0, b), DType::boolean);
    ids = masked_index(ids, valid, tokens);
    types = masked_index(types, valid, tokens);
    {
      Value steps = arange(c.b, tokens);
      current = steps;
      current = clone(expand(view(std::move(steps), {1, tokens}), {axes, tokens}));
    }
    to_host(types);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t image = each * static_cast<std::size_t>(b) + i;
      const ImageLayout& l = s.images[image];
      const Value row = select(mrope.grid, 0, static_cast<std::int64_t>(image));
      grid = hunyuan_grid_positions(c, slice(row, 0, 1, 3),
                                    {l.patches.rows / g.vision.merge, l.patches.cols / g.vision.merge});
      const std::int64_t n = grid.size(1), from = at + 2, offset = axes - 3;  // text, then the begin token
      copy_(slice(slice(current, 0, offset, offset + 2), 1, from, from + n), grid);
      fill_(slice(select(current, 0, offset + 2), 0, from, from + n));
      at += 1 + l.llm_tokens;
    }
    masked_index_put_(select(positions, 1, b), valid, current, tokens);
    Value last = add_scalar(reduce("max", DType::int64, Shape{}, current));
    deltas.push_back(sub_scalar(std::move(last)));
  }
  Value fresh = from_host(c.b, {s.batch}, DType::int64);
  deltas.clear();
  mrope.deltas = unsqueeze(std::move(fresh), 1);
  return positions;
}

/// modeling_hunyuan_vl.py, HunYuanVLModel.get_image_features: the tower's output, which the forward keeps.
inline TowerOutput tower_features(Context& c, const HunYuanModel& m, const PackedImages& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun one(c, 0, 1);
    return forward(c, m.vision, in, s.images);
  }
  TowerOutput all;
  std::vector<Value> parts;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size());
    parts.push_back(forward(c, m.vision, chunks[i].inputs, chunks[i].sequences.images).pooled);
  }
  all.pooled = eager::cat(parts, 1);
  return all;
}

/// modeling_hunyuan_vl.py, HunYuanVLForConditionalGeneration.forward over a fresh cache; the inputs' rope_deltas become
/// this call's.
inline Value prefill(Context& c, const HunYuanModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    TowerOutput tower;  // variables of the function: alive until it returns
    Value mask, positions;
    if (in.images.pixels) {
      tower = tower_features(c, m, in.images, s);
      features = to(tower.pooled, embeds.dtype());
      Value places = compare_scalar("eq.Scalar", in.text.ids);
      {
        const Value count = sum_all(places);
        places = unsqueeze(std::move(places), -1);
        check_features(embeds, places, features.size(1));
      }
      mask = std::move(places);
      embeds = masked_scatter(embeds, mask, features);
      positions = hunyuan_rope_index(c, in, in.mrope, s, *m.config);
    }
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache. generate() passes position_ids[axes, B, 1] (modeling_hunyuan_vl.py,
/// _prepare_position_ids_for_generation).
inline Value decode(Context& c, const HunYuanModel& m, const TextInputs& in, Cache& cache) {
  const auto axes = static_cast<std::int64_t>(m.config->language.sections.size());
  const Value positions =
      c.b.existing("position_ids", Role::input, DType::int64, {axes, in.ids.size(0), in.ids.size(1)});
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, positions, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
