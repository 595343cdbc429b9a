// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/qwen3_vl_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen3_vl.hpp>

namespace vlmest {

/// Qwen3-VL, dense and with experts (transformers models/qwen3_vl, models/qwen3_vl_moe): a tower over packed patches,
/// merged features of its last layer scattered into the embeddings, those of earlier layers added behind the decoder's
/// first layers, positions of three axes.
using Qwen3VlFamily = QwenVlFamily<Qwen3VlVision, Qwen3VlTextConfig>;
using Qwen3VlModel = Assembly<Qwen3VlFamily>;

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
      std::vector<Value> parts = split_by_grid(vision.tower.pooled, in.images.grid, s.images);
      features = to(cat(parts, 0), embeds.dtype());
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
      deepstack.mask = select(masks.image, -1, 0);
      deepstack.selected = features.size(0);
      deepstack.features = vision.deepstack;
      positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
    }
    hidden = forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
