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
constexpr FamilyTraits traits(const Qwen3VlFamily& g) {
  return {.features = FeatureCall{deepstack_line}, .frames = g.vision.frames};
}

using Qwen3VlModel = Assembly<Qwen3VlFamily>;

/// What a forward gets of get_image_features.
struct Qwen3VlImages {
  std::vector<Value> parts;      ///< pooler_output: merged features of each image
  std::vector<Value> deepstack;  ///< of each DeepStack layer, of all images
  TowerOutput tower;
};

/// modeling_qwen3_vl.py, Qwen3VLModel.get_image_features.
inline Qwen3VlImages image_features(Context& c, const Qwen3VlModel& m, const PackedImages& in, const Sequences& s) {
  Qwen3VlFeatures vision = forward(c, m.vision, in, s.images);
  std::vector<Value> parts = split_by_grid(vision.tower.pooled, in.grid, s.images);
  return {std::move(parts), std::move(vision.deepstack), std::move(vision.tower)};
}

/// The same in chunks: of each call merged and DeepStack features stay; the latter are put together layer by layer.
inline Qwen3VlImages batch_features(Context& c, const Qwen3VlModel& m, const PackedImages& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) return image_features(c, m, in, s);
  Qwen3VlImages all;
  std::vector<std::vector<Value>> layers;
  const auto chunks = vision_chunks(c, in, s);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size());
    Qwen3VlImages part = image_features(c, m, chunks[i].inputs, chunks[i].sequences);
    std::move(part.parts.begin(), part.parts.end(), std::back_inserter(all.parts));
    layers.resize(part.deepstack.size());
    for (std::size_t l = 0; l < layers.size(); ++l) layers[l].push_back(std::move(part.deepstack[l]));
  }
  std::vector<std::vector<Value>> kept = layers;  // the calls' results live to the end of the function
  for (std::vector<Value>& layer : layers) all.deepstack.push_back(eager::cat(layer, 0));
  return all;
}

/// modeling_qwen3_vl.py, Qwen3VLForConditionalGeneration.forward over a fresh cache; the inputs'
/// rope_deltas become this call's.
inline Value prefill(Context& c, const Qwen3VlModel& m, QwenVlInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Qwen3VlImages vision;  // variables of the function: alive until it returns
    Value features, positions;
    PlaceholderMasks masks;
    Deepstack deepstack;
    if (in.images.pixels) {
      vision = batch_features(c, m, in.images, s);
      std::vector<Value> parts = vision.parts;
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
