// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/idefics3/family.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// transformers 5.17, models/idefics3/configuration_idefics3.py and models/smolvlm/configuration_smolvlm.py, which
/// agree in every default.
inline Vlm read_idefics3_parts(const Reader& r, const char* type) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  // of the code that trained the released models, which the classes do not name; the sizes are the processor's
  r.without_effect({"image_seq_len", "use_reentrant_checkpointing"});
  v.without_effect({"max_image_size", "size", "use_base_siglip"});
  t.without_effect({"is_llama_config", "perceiver_config", "pixel_shuffle_factor", "qk_layer_norms", "rope_interleaved",
                    "use_resampler"});
  Idefics3Family f;
  f.smolvlm = std::string_view(type) == "smolvlm";
  f.vision = vit(v, Idefics3Vision{}, "gelu_pytorch_tanh");
  f.vision.attention_dropout = read_dropout(v, "attention_dropout", 0.0);
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.tied = r.boolean("tie_word_embeddings", false);
  f.projector = {.in = f.vision.hidden, .out = width(f.language), .scale = r.integer("scale_factor", 2, 1, 1 << 10)};
  const std::int64_t side = f.vision.image_size / f.vision.patch_size;
  if (side % f.projector.scale != 0)
    r.fail("scale_factor",
           std::to_string(side) + " patches a side are not divisible by " + std::to_string(f.projector.scale));
  Vlm m{.type = type};
  // The processors that were released with these models scale pictures to four tiles along the longer side.
  m.image_processor = image_processor::Idefics3{.tile_size = f.vision.image_size,
                                                .patch_size = f.vision.patch_size,
                                                .merge = f.projector.scale,
                                                .longest_edge = checked_mul(4, f.vision.image_size)};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}
inline Vlm read_idefics3(const Reader& r) { return read_idefics3_parts(r, "idefics3"); }
inline Vlm read_smolvlm(const Reader& r) { return read_idefics3_parts(r, "smolvlm"); }

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Idefics3& rule) {
  image.longest_edge(rule.longest_edge);
  image.tiling(rule.tiling);
  image.number("extra_newline", rule.extra_newline, 0, 1);
}
/// Idefics3 and SmolVLM. transformers 5.17 image_processing_idefics3.py and image_processing_smolvlm.py, which make the
/// same sizes; what the file leaves out is the class's own.
inline void read_image_keys(ProcessorKeys& k, image_processor::Idefics3& rule) {
  k.must_be("do_resize", true);
  const ProcessorSize size = k.size("size"), tile = k.size("max_image_size");
  if (size.given() && !size.longest_edge) k.fail("size", "has no longest_edge", "give the pixels of the longer side");
  rule.longest_edge = size.longest_edge.value_or(4 * 364);
  if (const std::int64_t side = tile.longest_edge.value_or(364); side != rule.tile_size)
    k.differs("max_image_size", "tiles of " + std::to_string(side) + " pixels",
              "vision_config.image_size of config.json is " + std::to_string(rule.tile_size));
  rule.tiling =
      k.boolean("do_image_splitting", true) ? image_processor::Tiling::automatic : image_processor::Tiling::never;
  k.ignore({"video_sampling", "max_frames", "video_size"});  // of videos: read_video_keys
}
/// SmolVLMVideoProcessor: frames become one square of max_image_size; video_sampling says how many are taken.
inline void read_video_keys(ProcessorKeys& k, image_processor::Idefics3& rule) {
  k.must_be("do_resize", true);
  if (const std::int64_t side = k.size("max_image_size").longest_edge.value_or(364); side != rule.tile_size)
    k.differs("max_image_size", "frames of " + std::to_string(side) + " pixels",
              "vision_config.image_size of config.json is " + std::to_string(rule.tile_size));
  k.ignore({"size", "do_image_splitting", "fps", "num_frames"});
  if (!k.given("video_sampling")) return;
  ProcessorKeys sampling(k.value("video_sampling"), k.where() + ".video_sampling");
  rule.video.fps = sampling.number("fps", 1);
  rule.video.max_frames = sampling.integer("max_frames", 64, 1, image_processor::max_frames);
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Idefics3& rule) {
  k.same("image_seq_len",
         image_processor::merged(image_processor::square_patches(rule.tile_size, rule.patch_size), rule.merge).count(),
         "scale_factor");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Idefics3 {
  static constexpr std::string_view folder = "idefics3";
  static constexpr std::array types{
      json::ModelType{
          .type = "idefics3", .read = json::hf::read_idefics3, .recorder = json::RecorderInputs{"tiles.idefics3"}},
      json::ModelType{
          .type = "smolvlm", .read = json::hf::read_smolvlm, .recorder = json::RecorderInputs{"tiles.idefics3"}}};
  using Rules = json::Rules<image_processor::Idefics3>;
};

}  // namespace vlmest::family
