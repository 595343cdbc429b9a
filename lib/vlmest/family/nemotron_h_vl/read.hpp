// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/family/nemotron_h_vl/family.hpp>
#include <vlmest/family/nemotron_h_vl/read_text.hpp>
#include <vlmest/family/nemotron_h_vl/read_vision.hpp>
#include <vlmest/family/nemotron_h_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "NemotronH_Nano_VL_V2", by the code that NVIDIA publishes with its checkpoints. Followed were:
/// - modeling.py, class NemotronH_Nano_VL_V2, generate() and forward(), as stored copies of it and of NVIDIA's later
///   models that go on from it (2025 and 2026) have them. An early copy writes features in training by another op and
///   keeps the tower frozen: this is of the later form, `embeds[selected] * 0.0 + features`.
/// - NVlabs/RADIO, commit c0f3701 (May 2026), radio/hf_model.py, radio_model.py, enable_cpe_support.py and
///   vit_patch_generator.py, over timm 1.0.29's VisionTransformer.
/// - transformers 5.17 models/nemotron_h/modeling_nemotron_h.py, NemotronHForCausalLM, in the place of the checkpoint's
///   copy, which cannot be imported without mamba_ssm.
/// - image_processing.py, NemotronNanoVLV2ImageProcessor, and processing.py.
/// The released files call the language model's part llm_config, early ones text_config.
inline Vlm read_nemotron_h_vl(const Reader& r) {
  const char* part = r.given("llm_config") || !r.given("text_config") ? "llm_config" : "text_config";
  if (!r.given(part)) r.fail(part, "missing", "give the language model's config");
  if (r.given("llm_config") && r.given("text_config")) r.fail("text_config", "stands beside llm_config", "give one");
  r.without_effect({"image_tag_type", "template", "video_pruning_rate"});
  NemotronHVlFamily f;
  f.language = read_nemotron_h(r.object(part));
  const std::int64_t side = r.given("force_image_size") ? r.side("force_image_size", 512) : 0;
  if (side == 0) r.fail("force_image_size", "missing: the class asks for it", "give 512, as released");
  f.vision = read_radio(r.object("vision_config"), side);
  f.merge = read_merge(r, "downsample_ratio", 0.5);
  const std::int64_t patch = f.vision.patch_size;
  if (r.integer("patch_size", patch, 1, 1 << 16) != patch)
    r.fail("patch_size", "the tower's patches have " + std::to_string(patch) + " pixels");
  if (side % (patch * f.merge) != 0)
    r.fail("force_image_size", "a tile has no whole number of squares of patches",
           "give a multiple of " + std::to_string(patch * f.merge));
  if (const std::string version = r.string("ps_version", "v1"); version != "v2")
    r.fail("ps_version", "'" + version.substr(0, 64) + "' is not supported", "known: v2, as released");
  if (r.integer("vit_hidden_size", 1280, 1, 1 << 20) != f.vision.hidden)
    r.fail("vit_hidden_size", "the tower has " + std::to_string(f.vision.hidden) + " channels", "make them agree");
  f.projector_hidden = r.integer("projector_hidden_size", 4096, 1, 1 << 24);
  if (side == f.vision.max_size)
    r.fail("force_image_size", "tiles as large as the table of positions were compared with no run", "give 512");
  Vlm m{.type = "NemotronH_Nano_VL_V2"};
  m.image_processor =
      image_processor::NemotronHVl{.image_size = side,
                                   .patch_size = patch,
                                   .merge = f.merge,
                                   .max_tiles = r.integer("max_num_tiles", 12, 1, image_processor::max_tile_count),
                                   .thumbnail = r.boolean("use_thumbnail", true)};
  m.native = {side, side};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::NemotronHVl& rule) {
  image.max_tiles(rule.max_tiles);
  image.flag("thumbnail", rule.thumbnail);
}

/// NemotronNanoVLV2ImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::NemotronHVl& rule) {
  k.same("image_size", rule.image_size, "force_image_size");
  k.same("patch_size", rule.patch_size, "patch_size");
  rule.max_tiles = k.integer("max_num_tiles", 12, 1, image_processor::max_tile_count);
  rule.thumbnail = k.boolean("use_thumbnail", true);
  k.ignore({"downsample_ratio", "norm_mean", "norm_std"});
}
inline void read_outer_keys(ProcessorKeys&, image_processor::NemotronHVl&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct NemotronHVl {
  static constexpr std::string_view folder = "nemotron_h_vl";
  static constexpr std::array types{json::ModelType{.type = "NemotronH_Nano_VL_V2",
                                                    .read = json::hf::read_nemotron_h_vl,
                                                    .recorder = json::not_recorded,
                                                    .remote_code = true}};
  using Rules = json::Rules<image_processor::NemotronHVl>;
};

}  // namespace vlmest::family
