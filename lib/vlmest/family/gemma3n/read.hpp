// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/family.hpp>
#include <vlmest/family/gemma3n/read_audio.hpp>
#include <vlmest/family/gemma3n/read_text.hpp>
#include <vlmest/family/gemma3n/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/vlm.hpp>

/// Gemma 3n out of a Hugging Face config: transformers 5.17, models/gemma3n/configuration_gemma3n.py.
namespace vlmest::json::hf {

/// Gemma3nVisionConfig, and what Gemma3nModel.get_image_features makes of the tower's map: vision_soft_tokens_per_image
/// rows of hidden_size, which must be all of it.
inline Gemma3nVision read_gemma3n_vision(const Reader& r, std::int64_t tokens) {
  check_part(r, "gemma3n_vision");
  constexpr std::string_view known = "mobilenetv5_300m_enc";
  if (const std::string name = r.string("architecture", known); name != known)
    r.fail("architecture", "'" + name.substr(0, 64) + "' is not modelled", "known: " + std::string(known));
  if (r.given("model_args") && !(r.value()["model_args"].is_object() && r.value()["model_args"].empty()))
    r.fail("model_args", "towers that differ from timm's are not modelled", "leave it out");
  refuse_null(r, {"hidden_size", "vocab_size", "vocab_offset"});
  Gemma3nVision v;
  v.hidden = r.integer("hidden_size", v.hidden, 1, 1 << 20);
  v.vocab = r.integer("vocab_size", v.vocab);
  v.features = tokens;
  constexpr std::int64_t elements = mobilenet_v5::channels * mobilenet_v5::side * mobilenet_v5::side;
  if (checked_mul(v.hidden, v.features) != elements)
    r.fail("hidden_size",
           std::to_string(v.features) + " rows of " + std::to_string(v.hidden) + " are not the tower's map of " +
               std::to_string(elements) + " elements",
           "2048, with vision_soft_tokens_per_image 256");
  return v;
}

/// model_type "gemma3n". A part that is missing is its class's default.
inline Vlm read_gemma3n(const Reader& r) {
  refuse_null(r, {"vision_soft_tokens_per_image", "audio_soft_tokens_per_image"});
  Gemma3nFamily f;
  const std::int64_t tokens = r.integer("vision_soft_tokens_per_image", 256, 1, 1 << 20);
  f.vision = read_gemma3n_vision(r.object("vision_config"), tokens);
  f.language = read_gemma3n_text(r.object("text_config"));
  f.audio = read_gemma3n_audio(r.object("audio_config"), r.integer("audio_soft_tokens_per_image", 188, 1, 1 << 20));
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "gemma3n"};
  m.image_processor = image_processor::Gemma3n{.image_tokens = tokens, .audio_tokens = f.audio.tokens};
  m.native = {mobilenet_v5::image_size, mobilenet_v5::image_size};
  audio::Gemma3nClips clips{.tower = f.audio};
  clips.mel.mels = f.audio.mels;
  m.audio = clips;
  m.family = std::move(f);
  return m;
}

/// model_type "gemma3n_text": Gemma3nForCausalLM.
inline Vlm read_gemma3n_lm(const Reader& r) {
  Gemma3nLmFamily f;
  f.language = read_gemma3n_text(r);
  f.tied = r.boolean("tie_word_embeddings", true);
  f.logits = LogitStep::softcap;
  return text_only("gemma3n_text", std::move(f));
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::Gemma3n&) {}
/// The checkpoints' is SiglipImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::Gemma3n& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.same("image_seq_length", rule.image_tokens, "vision_soft_tokens_per_image");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Gemma3n& rule) {
  k.same("image_seq_length", rule.image_tokens, "vision_soft_tokens_per_image");
  k.same("audio_seq_length", rule.audio_tokens, "audio_soft_tokens_per_image");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Gemma3n {
  static constexpr std::string_view folder = "gemma3n";
  static constexpr std::array types{
      json::ModelType{
          .type = "gemma3n", .read = json::hf::read_gemma3n, .recorder = json::RecorderInputs{"square.gemma3n", 768}},
      json::ModelType{.type = "gemma3n_text", .read = json::hf::read_gemma3n_lm, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Gemma3n>;
};

}  // namespace vlmest::family
