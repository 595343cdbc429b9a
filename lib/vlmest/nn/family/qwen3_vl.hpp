// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/family/deepstack.hpp>

/// Qwen3-VL's assembly, around its own text model or Cohere's: merged features of the tower's last layer scattered into
/// the embeddings, those of earlier layers added behind the decoder's first layers (DeepStack), positions of three
/// axes.
namespace vlmest {

/// As feature_calls::packed, with a list of DeepStack features beside it, one tensor for each layer:
/// modeling_qwen3_vl.py, modeling_qwen3_vl_moe.py.
inline std::string deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models." + type + ".modeling_" + type +
         " import BaseModelOutputWithDeepstackFeatures; " +
         feature_calls::wrapped(
             "model.model.get_image_features", "pixel_values, grid",
             "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
             "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
             "\"deepstack_features\")(f(p, g, **k)) " +
                 feature_calls::packed_pairs(n) + "])");
}
/// modeling_qwen3_vl.py, Qwen3VLModel.forward over a fresh cache: normed hidden states; the inputs' rope_deltas become
/// this call's.
template <class Model>
Value deepstack_hidden(Context& c, const Model& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, in.text.ids);
  Qwen3VlImages vision, frames;  // variables of the function: alive until it returns
  PlacedFeatures placed;
  Value positions;
  JoinedDeepstack both;
  if (in.images.pixels) {
    vision = deepstack_batch(c, m.vision, in.images, s);
    place_images(embeds, in.text.ids, vision.parts, placed);
  }
  if (in.videos.pixels) {
    const ChunkRun call = video_call(c, s);
    frames = deepstack_features(c, m.vision, in.videos, s.videos);
    place_videos(embeds, in.text.ids, frames.parts, placed);
  }
  const Deepstack deepstack = deepstack_of(placed, vision, frames, both);
  if (in.mrope.token_types) positions = rope_index(c, in.text, in.mrope, s, m.config->vision.merge);
  return forward(c, m.language, embeds, positions, in.text.mask, deepstack, cache);
}

}  // namespace vlmest
