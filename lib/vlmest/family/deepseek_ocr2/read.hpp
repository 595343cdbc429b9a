// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/deepseek_ocr2/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/deepseek_moe.hpp>
#include <vlmest/json/hf/sam.hpp>
#include <vlmest/json/processor/tiles.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// DeepseekOcr2VisionEncoderConfig: Qwen2's defaults. Its layers see one mask, whatever layer_types says.
inline LlamaConfig read_query_encoder(const Reader& r) {
  LlamaConfig d =
      text_model(r, LlamaConfig{.vocab = 151936, .intermediate = 22016, .qkv_bias = true}, 32, std::nullopt);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
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
  const nlohmann::json& types = r.value()["mlp_layer_types"];
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) < d.layers.layers)
    r.fail("mlp_layer_types", "expected one entry for each of the " + std::to_string(d.layers.layers) + " layers");
  for (std::int64_t i = 0; i < d.layers.layers; ++i) d.sparse.push_back(types[static_cast<std::size_t>(i)] == "sparse");
  return d;
}

/// model_type "deepseek_ocr2": transformers 5.17, models/deepseek_ocr2/configuration_deepseek_ocr2.py.
inline Vlm read_deepseek_ocr2(const Reader& r) {
  DeepseekOcr2Family f;
  f.vision = read_deepseek_ocr2_vision(r.object("vision_config"));
  f.language = read_deepseek_ocr2_text(r.object("text_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "deepseek_ocr2"};
  const image_processor::DeepseekOcr2 rule{.patch_size = f.vision.sam.patch_size};
  m.image_processor = rule;
  m.native = {rule.size, rule.size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::DeepseekOcr2& rule) { read_tiles(image, rule); }
/// DeepseekOcr2Processor passes crop_to_patches=True, min_patches=2 and max_patches=6 to every call, which comes before
/// the file (transformers 5.17 processing_deepseek_ocr2.py, _defaults).
inline void read_image_keys(ProcessorKeys& k, image_processor::DeepseekOcr2& rule) {
  k.must_be("do_resize", true);
  const ProcessorSize size = k.size("size");
  rule.size = size.height.value_or(rule.size);
  if (size.width.value_or(rule.size) != rule.size) k.fail("size", "is no square", "give equal height and width");
  rule.tile = k.integer("tile_size", rule.tile, 1, image_processor::max_side);
  k.ignore({"min_patches", "max_patches", "background_color"});
  if (!k.boolean("crop_to_patches", true))
    k.note("crop_to_patches is false, but the processor passes true to every call: pictures are cut");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::DeepseekOcr2& rule) {
  k.same("patch_size", rule.patch_size, "sam_config.patch_size");
  k.same("downsample_ratio", 4, "the two convolutions");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct DeepseekOcr2 {
  static constexpr std::string_view folder = "deepseek_ocr2";
  static constexpr std::array types{json::ModelType{.type = "deepseek_ocr2",
                                                    .read = json::hf::read_deepseek_ocr2,
                                                    .recorder = json::RecorderInputs{"tiles.deepseek_ocr2", 1024}}};
  using Rules = json::Rules<image_processor::DeepseekOcr2>;
};

}  // namespace vlmest::family
