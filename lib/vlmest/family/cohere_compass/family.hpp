// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/cohere_compass.hpp>
#include <vlmest/nn/family/qwen3_vl.hpp>

namespace vlmest {

/// Cohere's Compass (transformers models/cohere_compass): Qwen3-VL's tower and assembly around a text model of
/// Cohere's.
struct CompassFamily {
  Qwen3VlVision vision;
  CompassTextConfig language;
  bool tied = false;
  bool scaled = false;  ///< logit_scale: the logits are multiplied

  static constexpr AssemblyTraits assembly{.vision = "visual", .projector = nullptr};
};
constexpr FamilyTraits traits(const CompassFamily& g) {
  return {.features = FeatureCall{deepstack_line},
          .plain_head = !g.scaled,
          .frames = g.vision.frames,
          .videos = VideoPixels::own};
}

using CompassModel = Assembly<CompassFamily>;

inline QwenVlInputs make_inputs(Context& c, const CompassFamily& g, const Sequences& s) {
  return make_qwen_inputs(c, g.vision, s);
}

/// What the class does to its logits.
inline Value finished(const CompassModel& m, Value logits) {
  return m.config->scaled ? eager::mul_scalar(std::move(logits)) : logits;
}

/// modeling_cohere_compass.py, CohereCompassForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const CompassModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  if (c.labels && m.config->scaled && loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out what this model does to its logits",
                "give plan.loss=unfused or fused");
  const Value hidden = deepstack_hidden(c, m, in, s, cache);
  return head_output(c, m.head, hidden, [&m](Value logits) { return finished(m, std::move(logits)); });
}

/// One token over the cache.
inline Value decode(Context& c, const CompassModel& m, const TextInputs& in, Cache& cache) {
  return decode_on_axes(c, m, in, cache, [&m](Value logits) { return finished(m, std::move(logits)); });
}

}  // namespace vlmest
