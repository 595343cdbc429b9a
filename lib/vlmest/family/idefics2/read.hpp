// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/family/idefics2/family.hpp>
#include <vlmest/family/idefics2/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// Idefics2Config.__post_init__: the resampler is as wide as the language model, whatever perceiver_config says, and
/// the MLP ahead of it has the language model's inner width and activation (Idefics2Connector.__init__).
inline Idefics2Projector read_idefics2_projector(const Reader& r, const LlamaConfig& language, std::int64_t vision) {
  Idefics2Projector d{
      .in = vision, .intermediate = language.intermediate, .out = language.hidden, .activation = language.activation};
  r.integer("hidden_size", d.out, 1, 1 << 20);
  d.latents = r.integer("resampler_n_latents", d.latents, 1, 1 << 16);
  d.depth = r.layers("resampler_depth", d.depth);
  d.heads = r.integer("resampler_n_heads", d.heads, 1, 1 << 16);
  d.kv_heads = r.integer("num_key_value_heads", d.kv_heads, 1, 1 << 16);
  d.head_dim = r.integer("resampler_head_dim", d.head_dim, 1, 1 << 16);
  d.resampler_activation = parse_activation(r.string("hidden_act", "silu"));
  divides(r, "num_key_value_heads", d.heads, d.kv_heads);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  return d;
}

/// model_type "idefics2": transformers 5.17, models/idefics2/configuration_idefics2.py.
inline Vlm read_idefics2(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  Idefics2Family f;
  f.vision = vit(v, f.vision, "gelu_pytorch_tanh");
  f.vision.attention_dropout = read_dropout(v, "attention_dropout", 0.0);
  f.language = read_decoder(t, t.string("model_type", "mistral"));
  const auto* language = std::get_if<LlamaConfig>(&f.language);
  if (language == nullptr)
    t.fail("model_type", "a connector of the inner width of this language model is not modelled",
           "mistral, as the released checkpoints have it, or another one of Llama's build");
  f.projector = read_idefics2_projector(r.object("perceiver_config"), *language, f.vision.hidden);
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "idefics2"};
  // The processors that were released with these models split pictures, unlike their class.
  m.image_processor = image_processor::Idefics2{
      .patch_size = f.vision.patch_size, .latents = f.projector.latents, .tiling = image_processor::Tiling::automatic};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Idefics2& rule) {
  image.number("shortest_edge", rule.shortest_edge, 1, image_processor::max_side);
  image.longest_edge(rule.longest_edge);
  image.tiling(rule.tiling);
}
/// Idefics2ImageProcessor.
inline void read_image_keys(ProcessorKeys& k, image_processor::Idefics2& rule) {
  k.must_be("do_resize", true);
  k.must_be("do_pad", true);
  const ProcessorSize size = k.size("size");
  if (size.given() && !(size.shortest_edge && size.longest_edge))
    k.fail("size", "has no shortest_edge and longest_edge", "give both");
  rule.shortest_edge = size.shortest_edge.value_or(378);
  rule.longest_edge = size.longest_edge.value_or(980);
  rule.tiling =
      k.boolean("do_image_splitting", false) ? image_processor::Tiling::automatic : image_processor::Tiling::never;
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Idefics2& rule) {
  k.same("image_seq_len", rule.latents, "perceiver_config.resampler_n_latents");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Idefics2 {
  static constexpr std::string_view folder = "idefics2";
  static constexpr std::array types{json::ModelType{
      .type = "idefics2", .read = json::hf::read_idefics2, .recorder = json::RecorderInputs{"tiles.idefics2"}}};
  using Rules = json::Rules<image_processor::Idefics2>;
};

}  // namespace vlmest::family
