// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/family/gemma3/family.hpp>
#include <vlmest/family/gemma3/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/gemma_vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// Gemma3MultiModalProjector.__init__: windows of whole patches whose averages are mm_tokens_per_image tokens.
inline Gemma3Projector read_gemma3_projector(const Reader& r, const SiglipVision& v, std::int64_t width,
                                             std::int64_t tokens) {
  Gemma3Projector p{.in = v.hidden, .out = width, .side = v.image_size / v.patch_size};
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  p.window = p.side / side;
  if (p.window < 1 || (p.side / p.window) * (p.side / p.window) != tokens)
    r.fail("mm_tokens_per_image",
           std::to_string(tokens) + " tokens cannot be averaged from " + std::to_string(p.side) + "x" +
               std::to_string(p.side) + " patches",
           "compare with the vision_config's image_size and patch_size");
  return p;
}

/// What Gemma3Config and ShieldGemma2Config share.
inline Vlm gemma3_model(const Reader& r, const char* type_of_model, bool tied) {
  Gemma3Family f;
  f.vision = read_siglip_only(r.object("vision_config"));
  const Reader t = r.object("text_config");
  const std::string type = t.string("model_type", "gemma3_text");
  if (type != "gemma3_text") t.fail("model_type", "'" + type + "' is not supported here", "known: gemma3_text");
  f.language = read_gemma3_text_config(t);
  const std::int64_t tokens = r.integer("mm_tokens_per_image", 256, 1, 1 << 20);
  f.projector = read_gemma3_projector(r, f.vision, f.language.hidden, tokens);
  f.tied = tied;
  f.placeholder_outside = read_placeholder_outside(r, 262144, f.language.vocab);
  Vlm m{.type = type_of_model};
  m.image_processor = image_processor::Gemma3{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .image_tokens = tokens};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

/// model_type "gemma3": transformers 5.17, models/gemma3/configuration_gemma3.py.
inline Vlm read_gemma3(const Reader& r) { return gemma3_model(r, "gemma3", r.boolean("tie_word_embeddings", true)); }

/// model_type "shieldgemma2": models/shieldgemma2/configuration_shieldgemma2.py. Where it does not say whether the
/// head is tied, its text config does.
inline Vlm read_shieldgemma2(const Reader& r) {
  const bool text = r.object("text_config").boolean("tie_word_embeddings", true);
  Vlm m = gemma3_model(r, "shieldgemma2", r.boolean("tie_word_embeddings", text));
  get<Gemma3Family>(m.family).classifier = true;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Gemma3& rule) {
  image.flag("pan_and_scan", rule.pan_and_scan);
  image.number("min_ratio", rule.min_ratio);
  image.number("min_crop_size", rule.min_crop_size, 1, image_processor::max_side);
  image.number("max_crops", rule.max_crops, 1, image_processor::max_tile_count);
}
/// Pan and scan of the file decides nothing: Gemma3Processor passes false, 256, 4 and 1.2 to every call (transformers
/// 5.17 processing_gemma3.py, _defaults), which comes before the file. A description's pan_and_scan is the call's.
inline void read_image_keys(ProcessorKeys& k, image_processor::Gemma3& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.same("image_seq_length", rule.image_tokens, "mm_tokens_per_image");
  if (k.boolean("do_pan_and_scan", false))
    k.note("do_pan_and_scan is true, but the processor passes false to every call: no crops");
  k.ignore({"pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops", "pan_and_scan_min_ratio_to_activate"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Gemma3& rule) {
  k.same("image_seq_length", rule.image_tokens, "mm_tokens_per_image");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Gemma3 {
  static constexpr std::string_view folder = "gemma3";
  static constexpr std::array types{
      json::ModelType{
          .type = "gemma3", .read = json::hf::read_gemma3, .recorder = json::RecorderInputs{"square.gemma3"}},
      json::ModelType{.type = "shieldgemma2", .read = json::hf::read_shieldgemma2, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Gemma3>;
};

}  // namespace vlmest::family
