// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/deepseek_ocr2/family.hpp>
#include <vlmest/json/hf/deepseek_moe.hpp>
#include <vlmest/json/hf/sam.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// DeepseekOcr2VisionEncoderConfig: Qwen2's defaults. Its layers see one mask, whatever layer_types says.
inline LlamaConfig read_query_encoder(const Reader& r) {
  LlamaConfig d =
      text_model(r, LlamaConfig{.vocab = 151936, .intermediate = 22016, .qkv_bias = true}, 32, std::nullopt);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  r.without_effect({"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"});
  return d;
}

/// DeepseekOcr2VisionConfig.
inline DeepseekOcr2Vision read_deepseek_ocr2_vision(const Reader& r) {
  DeepseekOcr2Vision d;
  const Reader sam = r.object("sam_config");
  d.sam = read_sam(sam, d.sam);
  d.encoder = read_query_encoder(r.object("encoder_config"));
  const auto channels = sam.integers("downsample_channels", {d.between, d.features});
  if (channels.size() < 2) sam.fail("downsample_channels", "expected the channels of two convolutions");
  d.between = channels[0];
  d.features = channels[1];
  if (d.between < 1 || d.features != d.encoder.hidden)
    sam.fail("downsample_channels",
             "ends in " + std::to_string(d.features) + " channels, but the encoder's queries have " +
                 std::to_string(d.encoder.hidden),
             "the second one is encoder_config.hidden_size");
  return d;
}

/// DeepseekOcr2TextConfig.
inline DeepseekMoeConfig read_deepseek_ocr2_text(const Reader& r) {
  DeepseekMoeConfig d = read_deepseek_experts(r);
  if (!r.given("mlp_layer_types")) r.fail("mlp_layer_types", "missing", "give \"dense\" or \"sparse\" for each layer");
  d.sparse = marked_layers(r, "mlp_layer_types", d.layers.layers, "dense", "sparse");
  return d;
}

inline Vlm deepseek_ocr2_vlm(DeepseekOcr2Family f) {
  Vlm m{.type = "deepseek_ocr2"};
  const image_processor::DeepseekOcr2 rule{.patch_size = f.vision.sam.patch_size};
  m.image_processor = rule;
  m.native = {rule.size, rule.size};
  m.family = std::move(f);
  return m;
}

/// model_type "deepseek_ocr2": transformers 5.17, models/deepseek_ocr2/configuration_deepseek_ocr2.py.
inline Vlm read_deepseek_ocr2(const Reader& r) {
  DeepseekOcr2Family f;
  f.vision = read_deepseek_ocr2_vision(r.object("vision_config"));
  f.language = read_deepseek_ocr2_text(r.object("text_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  return deepseek_ocr2_vlm(std::move(f));
}

}  // namespace vlmest::json::hf
