// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/family/blip2/video_rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/opt.hpp>
#include <vlmest/json/hf/qformer.hpp>
#include <vlmest/json/hf/t5.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// BLIP-2 and InstructBLIP: transformers 5.17, models/blip_2/configuration_blip_2.py, models/instructblip/
/// configuration_instructblip.py, models/instructblipvideo/configuration_instructblipvideo.py.
namespace vlmest::json::hf {

/// Blip2VisionConfig, InstructBlipVisionConfig; its patch embedding takes three channels whatever the config says.
inline Blip2Vision read_blip2_tower(const Reader& r) {
  Blip2Vision d = vit(r, Blip2Vision{}, "gelu");
  d.channels = 3;
  d.qkv_bias = r.boolean("qkv_bias", d.qkv_bias);
  return d;
}

/// Which class the config is of.
enum class Blip2Class : std::uint8_t { blip2, instruct, instruct_video };

/// The part of a family's config that does not depend on its language model.
template <class Family>
Family read_blip2_family(const Reader& r, Blip2Class of) {
  Family f;
  f.vision = read_blip2_tower(r.object("vision_config"));
  f.qformer = read_qformer(r.object("qformer_config"), f.vision.hidden, of != Blip2Class::blip2);
  f.query_tokens = r.integer("num_query_tokens", f.query_tokens, 1, 1 << 16);
  f.videos = of == Blip2Class::instruct_video;
  return f;
}

/// With OPT. The output head is tied by the language model's own key.
inline Blip2Family read_blip2_opt(const Reader& r, const Reader& t, Blip2Class of) {
  auto f = read_blip2_family<Blip2Family>(r, of);
  f.language = read_opt(t);
  if (projects(f.language))
    t.fail("word_embed_proj_dim", "must be hidden_size: image features of that width go among the embeddings");
  f.tied = t.boolean("tie_word_embeddings", true);
  return f;
}

/// With Llama, whose head the same key ties.
inline Blip2DecoderFamily read_blip2_llama(const Reader& r, const Reader& t, Blip2Class of) {
  auto f = read_blip2_family<Blip2DecoderFamily>(r, of);
  f.language = read_llama(t);
  f.tied = t.boolean("tie_word_embeddings", false);
  return f;
}

/// With T5.
inline Blip2T5Family read_blip2_t5(const Reader& r, const Reader& t, Blip2Class of) {
  auto f = read_blip2_family<Blip2T5Family>(r, of);
  f.language = read_t5(t);
  return f;
}

/// What the language model is decides whether it has an encoder (Blip2Config.__post_init__); a key that says otherwise
/// makes transformers look for a class that there is not.
inline Vlm read_blip2_model(const Reader& r, std::string_view model_type, Blip2Class of) {
  const bool instructed = of != Blip2Class::blip2;
  const Reader t = r.object("text_config");
  const std::string type = t.string("model_type", "opt");
  const bool llama = instructed && type == "llama";
  if (type != "opt" && type != "t5" && !llama)
    t.fail("model_type", "unknown language model '" + type + "' of " + (instructed ? "InstructBLIP" : "BLIP-2"),
           instructed ? "known: llama, opt, t5" : "known: opt, t5");
  const bool alone = type != "t5";
  if (r.boolean("use_decoder_only_language_model", alone) != alone)
    r.fail("use_decoder_only_language_model", "must be " + std::string(alone ? "true" : "false") + " with " + type,
           "leave the key out");
  Vlm m{.type = std::string(model_type)};
  const auto finish = [&](auto f) {
    const image_processor::Blip2 square{
        .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .query_tokens = f.query_tokens};
    if (f.videos)
      m.image_processor = image_processor::InstructBlipVideo{square};
    else
      m.image_processor = square;
    m.native = {f.vision.image_size, f.vision.image_size};
    m.family = std::move(f);
  };
  if (llama)
    finish(read_blip2_llama(r, t, of));
  else if (alone)
    finish(read_blip2_opt(r, t, of));
  else
    finish(read_blip2_t5(r, t, of));
  return m;
}

/// model_type "blip-2".
inline Vlm read_blip2(const Reader& r) { return read_blip2_model(r, "blip-2", Blip2Class::blip2); }
/// model_type "instructblip".
inline Vlm read_instruct_blip(const Reader& r) { return read_blip2_model(r, "instructblip", Blip2Class::instruct); }
/// model_type "instructblipvideo".
inline Vlm read_instruct_blip_video(const Reader& r) {
  return read_blip2_model(r, "instructblipvideo", Blip2Class::instruct_video);
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::Blip2&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::Blip2& rule) { read_square_keys(k, rule.image_size); }
inline void read_outer_keys(ProcessorKeys& k, image_processor::Blip2& rule) {
  k.same("num_query_tokens", rule.query_tokens, "num_query_tokens");
}

inline void read_image(DescriptionImage&, image_processor::InstructBlipVideo&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::InstructBlipVideo& rule) {
  read_square_keys(k, rule.frame.image_size);
}
inline void read_video_keys(ProcessorKeys& k, image_processor::InstructBlipVideo& rule) {
  read_square_keys(k, rule.frame.image_size);
  refuse_num_frames(k);
  k.ignore({"fps"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::InstructBlipVideo& rule) {
  read_outer_keys(k, rule.frame);
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Blip2 {
  static constexpr std::string_view folder = "blip2";
  static constexpr std::array types{
      json::ModelType{.type = "blip-2", .read = json::hf::read_blip2, .recorder = json::RecorderInputs{"square.blip2"}},
      json::ModelType{.type = "instructblip",
                      .read = json::hf::read_instruct_blip,
                      .recorder = json::RecorderInputs{"square.instruct_blip"}},
      json::ModelType{
          .type = "instructblipvideo", .read = json::hf::read_instruct_blip_video, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Blip2, image_processor::InstructBlipVideo>;
};

}  // namespace vlmest::family
