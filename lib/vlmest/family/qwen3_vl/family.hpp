// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/qwen3_vl.hpp>

namespace vlmest {

/// Qwen3-VL, dense and with experts (transformers models/qwen3_vl, models/qwen3_vl_moe): a tower over packed patches,
/// merged features of its last layer scattered into the embeddings, those of earlier layers added behind the decoder's
/// first layers, positions of three axes.
using Qwen3VlFamily = QwenVlFamily<Qwen3VlVision, Qwen3VlTextConfig>;
constexpr FamilyTraits traits(const Qwen3VlFamily& g) {
  return {.features = FeatureCall{deepstack_line}, .frames = g.vision.frames, .videos = VideoPixels::own};
}

using Qwen3VlModel = Assembly<Qwen3VlFamily>;

/// modeling_qwen3_vl.py, Qwen3VLForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Qwen3VlModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  const Value hidden = deepstack_hidden(c, m, in, s, cache);
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
