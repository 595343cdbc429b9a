// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/kimi_vl/family.hpp>
#include <vlmest/family/kimi_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Kimi-VL: configuration_kimi_vl.py, modeling_kimi_vl.py and image_processing_kimi_vl.py of moonshotai/
/// Kimi-VL-A3B-Instruct (April 2025). Copies that this follows: the tower, vllm-project/vllm
/// vllm/model_executor/models/moonvit.py and NVIDIA-NeMo/Automodel nemo_automodel/components/models/kimivl/model.py;
/// the processor, Blaizzy/mlx-vlm mlx_vlm/models/kimi_vl/processing_kimi_vl.py. text_config has the defaults of
/// transformers 5.17's DeepseekV3Config, whose class runs it here.
namespace vlmest::json::hf {

/// MoonViTConfig. Its activation is no key: gelu by tanh.
inline KimiVlVision read_kimi_vl_vision(const Reader& v) {
  KimiVlVision d;
  d.hidden = v.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = v.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = v.layers("num_hidden_layers", d.layers);
  d.heads = v.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.patch_size = v.integer("patch_size", d.patch_size, 1, 1 << 14);
  d.table_rows = v.integer("init_pos_emb_height", d.table_rows, 1, 1 << 14);
  d.table_cols = v.integer("init_pos_emb_width", d.table_cols, 1, 1 << 14);
  const std::vector<std::int64_t> merge = v.integers("merge_kernel_size", {2, 2});
  if (merge.size() != 2 || merge[0] < 1 || merge[1] < 1 || merge[0] > 64 || merge[1] > 64)
    v.fail("merge_kernel_size", "expected rows and columns of patches, each from 1 to 64");
  d.merge_rows = merge[0];
  d.merge_cols = merge[1];
  divides(v, "num_attention_heads", d.hidden, d.heads);
  if (d.hidden / d.heads % 4 != 0)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4");
  return d;
}

/// Keys of the checkpoints' own DeepSeek-V3 that transformers' class does not ask for: with other values than these,
/// the two differ.
inline void check_own_deepseek(const Reader& t) {
  if (t.integer("moe_layer_freq", 1, 1, 1024) != 1)
    t.fail("moe_layer_freq", "transformers' DeepseekV3 has experts in every layer behind the dense ones", "give 1");
  for (const auto& [key, value] : {std::pair{"scoring_func", "sigmoid"}, std::pair{"topk_method", "noaux_tc"}})
    if (t.string(key, value) != value)
      t.fail(key, std::string("transformers' DeepseekV3 routes by ") + value + " alone", value);
  if (t.integer("ep_size", 1, 1, 1024) != 1)
    t.fail("ep_size", "experts that the checkpoint's own code divides among ranks are not modelled", "give 1");
}

/// model_type "kimi_vl".
inline Vlm read_kimi_vl(const Reader& r) {
  const Reader t = r.object("text_config");
  KimiVlFamily f;
  f.vision = read_kimi_vl_vision(r.object("vision_config"));
  if (const std::string type = t.string("model_type", "deepseek_v3"); type != "deepseek_v3")
    t.fail("model_type", "'" + type.substr(0, 64) + "': the class builds DeepSeek-V3 alone", "deepseek_v3");
  check_own_deepseek(t);
  f.language = read_decoder(t, "deepseek_v3");
  f.projector = {.in = f.vision.hidden, .merged = f.vision.merged(), .out = width(f.language)};
  f.tied = t.boolean("tie_word_embeddings", false);
  Vlm m{.type = "kimi_vl"};
  m.image_processor = image_processor::KimiVl{
      .patch_size = f.vision.patch_size, .merge_rows = f.vision.merge_rows, .merge_cols = f.vision.merge_cols};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::KimiVl& rule) {
  image.number("in_token_limit", rule.in_token_limit);
  image.flag("pad_input", rule.pad_input);
}
/// KimiVLImageProcessor, whose defaults are not the released settings.
inline void read_image_keys(ProcessorKeys& k, image_processor::KimiVl& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  if (k.given("merge_kernel_size") &&
      k.value("merge_kernel_size") != nlohmann::json::array({rule.merge_rows, rule.merge_cols}))
    k.differs("merge_kernel_size", k.value("merge_kernel_size").dump().substr(0, 64),
              "vision_config.merge_kernel_size of config.json is [" + std::to_string(rule.merge_rows) + ", " +
                  std::to_string(rule.merge_cols) + "]");
  rule.in_token_limit = k.integer("in_token_limit", 4096, 1, std::int64_t{1} << 40);
  rule.pad_input = k.boolean("pad_input", false);
  k.ignore({"num_pooled_tokens"});  // nothing reads it
}
inline void read_outer_keys(ProcessorKeys&, image_processor::KimiVl&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct KimiVl {
  static constexpr std::string_view folder = "kimi_vl";
  static constexpr std::array types{json::ModelType{
      .type = "kimi_vl", .read = json::hf::read_kimi_vl, .recorder = json::not_recorded, .remote_code = true}};
  using Rules = json::Rules<image_processor::KimiVl>;
};

}  // namespace vlmest::family
