// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <variant>

#include <vlmest/family/minicpmv/family.hpp>
#include <vlmest/family/minicpmv/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// MiniCPM-V 2.6 by the files that its checkpoint brings, as 404805854/minicpmv2.6-onnx took them over in commit
/// 8490e59 (October 2024), ahead of its own changes: configuration_minicpm.py, modeling_minicpmv.py,
/// modeling_navit_siglip.py, resampler.py, image_processing_minicpmv.py, processing_minicpmv.py. Keys of the language
/// model stand at the top, with the defaults of transformers' Qwen2Config.
namespace vlmest::json::hf {

/// Checkpoints of one model_type bring different code: 2.0 and 2.5 other towers and language models, 4 MiniCPM's own
/// language model, 4.5 Qwen3 and a resampler over several frames.
inline void check_minicpmv_version(const Reader& r) {
  const double version = r.given("version") ? r.number("version", 0) : 0;
  if (version != 2.6)
    r.fail("version",
           r.given("version") ? "other code than MiniCPM-V 2.6's is not modelled"
                              : "missing: this is no MiniCPM-V 2.6, whose code alone is modelled",
           "known: 2.6");
}

/// SiglipVisionConfig of modeling_navit_siglip.py; without a vision_config that of MiniCPMVConfig.
inline Idefics3Vision read_minicpmv_vision(const Reader& r) {
  const Reader v = r.object("vision_config");
  Idefics3Vision d{.hidden = 768, .heads = 12, .patch_size = 16};
  if (!r.given("vision_config"))
    d = {.hidden = 1152, .intermediate = 4304, .layers = 27, .heads = 16, .image_size = 980, .patch_size = 14};
  d = vit(v, d, "gelu_pytorch_tanh");
  if (read_dropout(v, "attention_dropout", 0.0))
    v.fail("attention_dropout", "dropout of this tower is not modelled", "give 0.0, as released");
  if (r.boolean("drop_vision_last_layer", true) && d.layers > 0) --d.layers;
  return d;
}

/// What sizes of slices the class itself keeps; the processor's own file decides.
inline image_processor::MiniCpmV read_minicpmv_slices(const Reader& r, image_processor::MiniCpmV rule) {
  const Reader s = r.object("slice_config");
  s.without_effect({"model_type"});
  rule.max_tiles = s.integer("max_slice_nums", r.given("slice_config") ? 9 : 1, 1, image_processor::max_tile_count);
  rule.scale = s.integer("scale_resolution", 448, 1, image_processor::max_side);
  if (s.integer("patch_size", 14, 1, 1 << 14) != rule.patch_size)
    s.fail("patch_size", "differs from vision_config.patch_size", std::to_string(rule.patch_size));
  rule.image_ids = r.boolean("use_image_id", true);
  if (!r.boolean("slice_mode", true))
    r.fail("slice_mode", "false: pictures that are not resized at all are not modelled", "give true, as released");
  return rule;
}

/// model_type "minicpmv".
inline Vlm read_minicpmv(const Reader& r) {
  check_minicpmv_version(r);
  r.without_effect({"batch_vision_input", "image_size", "patch_size"});  // nothing in the code reads them
  MiniCpmVFamily f;
  f.vision = read_minicpmv_vision(r);
  f.language = read_decoder(r, "qwen2");
  if (std::get_if<LlamaConfig>(&f.language) == nullptr) r.fail("model_type", "the class builds Qwen2 alone");
  f.resampler = {.queries = r.integer("query_num", 64, 1, 1 << 16), .in = f.vision.hidden, .width = width(f.language)};
  if (f.resampler.width % 128 != 0)
    r.fail("hidden_size", "the resampler has a head for every 128 channels", "give a multiple of 128");
  f.vision_batch = r.integer("vision_batch_size", 16, 1, 1 << 20);
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "minicpmv"};
  m.image_processor = read_minicpmv_slices(r, {.patch_size = f.vision.patch_size, .queries = f.resampler.queries});
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::MiniCpmV& rule) { image.max_tiles(rule.max_tiles); }

/// MiniCPMVImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::MiniCpmV& rule) {
  k.must_be("slice_mode", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("image_feature_size", rule.queries, "query_num");
  rule.max_tiles = k.integer("max_slice_nums", 9, 1, image_processor::max_tile_count);
  rule.scale = k.integer("scale_resolution", 448, 1, image_processor::max_side);
  rule.image_ids = k.boolean("use_image_id", false);
  k.ignore({"im_start", "im_end", "im_start_token", "im_end_token", "slice_start", "slice_end", "unk", "im_id_start",
            "im_id_end", "norm_mean", "norm_std", "version"});  // words and values, not sizes
}
inline void read_outer_keys(ProcessorKeys&, image_processor::MiniCpmV&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct MiniCpmV {
  static constexpr std::string_view folder = "minicpmv";
  static constexpr std::array types{json::ModelType{
      .type = "minicpmv", .read = json::hf::read_minicpmv, .recorder = json::not_recorded, .remote_code = true}};
  using Rules = json::Rules<image_processor::MiniCpmV>;
};

}  // namespace vlmest::family
