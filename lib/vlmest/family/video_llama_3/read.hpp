// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/video_llama_3/family.hpp>
#include <vlmest/family/video_llama_3/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/video_llama_3/configuration_video_llama_3.py.
namespace vlmest::json::hf {

/// VideoLlama3VisionConfig, which has no size of images.
inline VideoLlama3Vision read_video_llama_3_tower(const Reader& v) {
  VideoLlama3Vision g;
  g.hidden = v.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = v.layers("num_hidden_layers", g.layers);
  g.heads = v.integer("num_attention_heads", g.heads, 1, 1 << 16);
  g.channels = v.integer("num_channels", g.channels, 1, 1 << 10);
  g.patch_size = v.side("patch_size", g.patch_size);
  g.activation = parse_activation(v.string("hidden_act", "gelu_pytorch_tanh"));
  divides(v, "num_attention_heads", g.hidden, g.heads);
  if (g.hidden / g.heads % 4 != 0)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4");
  return g;
}

/// model_type "video_llama_3": the head is tied where either part says so. How many patches a token stands for is the
/// processors' to say.
inline Vlm read_video_llama_3(const Reader& r) {
  const Reader t = r.object("text_config");
  VideoLlama3Family f;
  f.vision = read_video_llama_3_tower(r.object("vision_config"));
  f.language = read_decoder(t, t.string("model_type", "qwen2"));
  f.projector = {.in = f.vision.hidden, .out = width(f.language)};
  f.tied = r.boolean("tie_word_embeddings", false) || t.boolean("tie_word_embeddings", false);
  Vlm m{.type = "video_llama_3"};
  m.image_processor = image_processor::VideoLlama3{.patch_size = f.vision.patch_size};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::VideoLlama3& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::VideoLlama3& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("temporal_patch_size", 1, "the model, which takes single frames,");
  k.same("merge_size", 1, "the estimate, which knows pictures without merging,");
  read_budget(k, rule.budget, {56 * 56, 28 * 28 * 1280}, true);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::VideoLlama3&) {}
inline void read_video_keys(ProcessorKeys& k, image_processor::VideoLlama3& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("temporal_patch_size", 1, "the model, which takes single frames,");
  k.same("merge_size", 2, "the estimate, which knows frames merged by two,");
  image_processor::VideoLimits& v = rule.video;
  read_budget(k, v.budget, {128 * 28 * 28, 28 * 28 * 768}, true);
  v.fps = read_rate(k, std::nullopt);
  refuse_num_frames(k);
  v.min_frames = k.integer("min_frames", 4, 1, image_processor::max_frames);
  v.max_frames = k.integer("max_frames", 180, v.min_frames, 1 << 24);
  k.ignore({"use_token_compression"});  // what it drops depends on the video: all tokens are counted
}

}  // namespace vlmest::json

namespace vlmest::family {

struct VideoLlama3 {
  static constexpr std::string_view folder = "video_llama_3";
  static constexpr std::array types{json::ModelType{.type = "video_llama_3",
                                                    .read = json::hf::read_video_llama_3,
                                                    .recorder = json::RecorderInputs{"native.video_llama_3", 448}}};
  using Rules = json::Rules<image_processor::VideoLlama3>;
};

}  // namespace vlmest::family
