// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/mllama.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// models/mllama/configuration_mllama.py, MllamaVisionConfig.
inline MllamaVision read_mllama_vision(const Reader& r) {
  MllamaVision d;
  d.heads = r.integer("attention_heads", d.heads, 1, 1 << 16);
  divides(r, "attention_heads", r.integer("hidden_size", d.hidden, 1, 1 << 20), d.heads);
  d = vit(r, d, "gelu");
  d.global_layers = r.integer("num_global_layers", d.global_layers, 0, 1024);
  d.max_tiles = r.integer("max_num_tiles", d.max_tiles, 1, 1024);
  if (r.given("supported_aspect_ratios")) {
    const auto& list = r.value()["supported_aspect_ratios"];
    if (!list.is_array() || list.empty() || list.size() > 65536)
      r.fail("supported_aspect_ratios", "expected a list of [rows, columns]");
    d.aspect_ratios = static_cast<std::int64_t>(list.size());
  } else if (d.max_tiles != 4) {
    r.fail("max_num_tiles", "must be 4 for the default aspect ratios", "give supported_aspect_ratios");
  }
  d.intermediate_layers = r.integers("intermediate_layers_indices", d.intermediate_layers);
  for (auto i : d.intermediate_layers)
    if (i >= d.layers || i < -d.layers)
      r.fail("intermediate_layers_indices", "the tower has " + std::to_string(d.layers) + " layers");
  if (r.integer("vision_output_dim", 7680) != d.output())
    r.fail("vision_output_dim", "the tower gives " + std::to_string(d.output()) + " channels",
           "it is hidden_size times one more than the intermediate layers");
  return d;
}

/// models/mllama/configuration_mllama.py, MllamaTextConfig. Cross-attention indices beyond the last layer are without
/// effect, as in MllamaTextModel.__init__.
inline MllamaText read_mllama_text(const Reader& r) {
  MllamaText d;
  d.base = text_model(r, d.base, 8, std::nullopt);
  d.cross.assign(static_cast<std::size_t>(d.base.layers), false);
  for (auto i : r.integers("cross_attention_layers", {3, 8, 13, 18, 23, 28, 33, 38}))
    if (i >= 0 && i < d.base.layers) d.cross[static_cast<std::size_t>(i)] = true;
  return d;
}

/// model_type "mllama".
inline Vlm read_mllama(const Reader& r) {
  MllamaFamily f{.vision = read_mllama_vision(r.object("vision_config")),
                 .language = read_mllama_text(r.object("text_config"))};
  Vlm m{.type = "mllama"};
  m.tokens = tokens::Mllama{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .max_tiles = f.vision.max_tiles};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf
