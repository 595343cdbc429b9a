// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/projector/paddleocr_vl.hpp>
#include <vlmest/nn/vision/paddleocr_vl.hpp>

namespace vlmest {

/// PaddleOCR-VL (transformers models/paddleocr_vl): SigLIP over packed patches, squares of them projected, ERNIE 4.5's
/// layers (those of Llama, with or without biases) under Qwen2-VL's positions of three axes.
struct PaddleOcrFamily {
  PaddleOcrVision vision;
  PaddleOcrProjector projector;
  QwenVlTextConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.vision = "visual", .projector = "projector", .projector_last = true};
};
constexpr FamilyTraits traits(const PaddleOcrFamily&) { return {.features = feature_calls::packed, .frames = 1}; }

using PaddleOcrModel = Assembly<PaddleOcrFamily>;

inline QwenVlInputs make_inputs(Context& c, const PaddleOcrFamily& g, const Sequences& s) {
  QwenVlInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (s.images.empty()) return r;
  const PaddleOcrVision& v = g.vision;
  r.images.pixels = c.b.existing("pixel_values", Role::input, c.dtype(),
                                 {total_patches(s.images), v.channels, v.patch_size, v.patch_size});
  r.images.grid =
      c.b.existing("image_grid_thw", Role::input, DType::int64, {static_cast<std::int64_t>(s.images.size()), 3});
  r.mrope.token_types = c.b.existing("mm_token_type_ids", Role::input, DType::int32, {s.batch, s.seq});
  r.mrope.grid = r.images.grid;
  r.mrope.deltas = c.b.existing("rope_deltas", Role::buffer, DType::int64, {s.batch, 1});
  return r;
}

/// modeling_paddleocr_vl.py, PaddleOCRVLModel.get_image_features.
inline std::vector<Value> image_features(Context& c, const PaddleOcrModel& m, const PackedImages& input,
                                         const Sequences& s) {
  const Value hidden = forward(c, m.vision, input, s.images);
  const Value features = forward(c, m.projector, hidden, input.grid, s.images);
  return split_by_grid(features, input.grid, s.images);
}

/// modeling_paddleocr_vl.py, PaddleOCRVLForConditionalGeneration.forward over a fresh cache; the inputs' rope_deltas
/// become this call's.
inline Value prefill(Context& c, const PaddleOcrModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value features, mask, positions;  // variables of the function: alive until it returns
    if (in.images.pixels) {
      features = to(joined(batch_features(c, m, in.images, s)), embeds.dtype());
      mask = placeholder_mask(in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
      positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    }
    hidden = forward(c, m.language, embeds, positions, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache. generate() passes position_ids[4, B, 1] (modeling_paddleocr_vl.py,
/// _prepare_position_ids_for_generation: text positions, then the three axes).
inline Value decode(Context& c, const PaddleOcrModel& m, const TextInputs& in, Cache& cache) {
  return decode_on_axes(c, m, in, cache);
}

}  // namespace vlmest
