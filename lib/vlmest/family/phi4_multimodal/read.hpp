// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/family/phi4_multimodal/family.hpp>
#include <vlmest/family/phi4_multimodal/read_audio.hpp>
#include <vlmest/family/phi4_multimodal/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/nn/vlm.hpp>

/// Phi-4-multimodal out of a Hugging Face config: transformers 5.17, models/phi4_multimodal/
/// configuration_phi4_multimodal.py.
namespace vlmest::json::hf {

/// Phi4MultimodalVisionConfig. image_size sizes the table of positions alone: crops are of crop_size.
inline Phi4Vision read_phi4_vision(const Reader& r) {
  check_part(r, "phi4_multimodal_vision");
  for (const char* key : {"image_size", "patch_size"})
    if (r.given(key) && r.value()[key].is_array())
      r.fail(key, "a list, by which the class cannot divide", "give one number");
  Phi4Vision v;
  v.patches = vit(r, v.patches, "gelu_pytorch_tanh");
  v.patches.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  if (const std::int64_t side = v.patches.image_size / v.patches.patch_size; side % 2 != 0)
    r.fail("image_size", std::to_string(side) + " patches a side, which the class fills up, are not modelled",
           "give an even number of patches");
  refuse_null(r, {"feature_layer", "crop_size"});
  v.feature_layer = r.integer("feature_layer", v.feature_layer, -1025, 1024);
  check_feature_layer(r, v.feature_layer, v.patches.layers, "feature_layer");
  if (const std::int64_t crop = r.integer("crop_size", 448, 1, 1 << 20);
      crop != image_processor::phi4_patches * v.patches.patch_size)
    r.fail("crop_size",
           std::to_string(crop) + " pixels are not the " + std::to_string(image_processor::phi4_patches) +
               " patches a side that the processor counts tokens of",
           "set it to " + std::to_string(image_processor::phi4_patches * v.patches.patch_size));
  return v;
}

/// model_type "phi4_multimodal". A part that is missing is its class's default.
inline Vlm read_phi4_multimodal(const Reader& r) {
  Phi4MultimodalFamily f;
  f.vision = read_phi4_vision(r.object("vision_config"));
  f.language = read_phi3(r, 200064, 8);
  f.audio = read_phi4_audio(r.object("audio_config"));
  f.tied = r.boolean("tie_word_embeddings", false);
  if (read_dropout(r, "embd_pdrop", 0.0))
    r.fail("embd_pdrop", "dropping in embeddings with features among them is not modelled", "set it to 0");
  Vlm m{.type = "phi4_multimodal"};
  const std::int64_t patch = f.vision.patches.patch_size, crop = image_processor::phi4_patches * patch;
  m.image_processor = image_processor::Phi4Multimodal{.crop_size = crop, .patch_size = patch};
  m.native = {crop, crop};
  audio::Phi4Clips clips{.tower = f.audio};
  clips.mel.mels = f.audio.mels;
  m.audio = clips;
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Phi4Multimodal& rule) {
  image.max_tiles(rule.max_tiles);
}
/// Phi4MultimodalImageProcessor. do_resize is not asked for.
inline void read_image_keys(ProcessorKeys& k, image_processor::Phi4Multimodal& rule) {
  k.ignore({"do_resize"});
  ProcessorSize size = k.size("size");
  if (!size.given()) size.height = size.width = 448;
  k.square("size", size, rule.crop_size);
  if (const std::int64_t patch = k.integer("patch_size", 14, 1, image_processor::max_side); patch != rule.patch_size)
    k.differs("patch_size", std::to_string(patch), "vision_config makes it " + std::to_string(rule.patch_size));
  rule.max_tiles = k.integer("dynamic_hd", 36, 1, image_processor::max_tile_count);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Phi4Multimodal&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Phi4Multimodal {
  static constexpr std::string_view folder = "phi4_multimodal";
  static constexpr std::array types{json::ModelType{.type = "phi4_multimodal",
                                                    .read = json::hf::read_phi4_multimodal,
                                                    .recorder = json::RecorderInputs{"tiles.phi4_multimodal"},
                                                    .own_code = "phi4mm"}};
  using Rules = json::Rules<image_processor::Phi4Multimodal>;
};

}  // namespace vlmest::family
