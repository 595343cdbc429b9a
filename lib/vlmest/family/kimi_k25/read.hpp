// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>

#include <vlmest/family/kimi_k25/family.hpp>
#include <vlmest/family/kimi_k25/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vlm.hpp>

/// Kimi-K2.5, K2.6 and K2.7: transformers 5.17, models/kimi_k25/configuration_kimi_k25.py, and the configs of the
/// released checkpoints, which their own code reads and which name the tower's sizes otherwise (vLLM,
/// vllm/transformers_utils/configs/kimi_k25.py). That class drops those names and takes its defaults, which are the
/// released sizes.
namespace vlmest::json::hf {

/// The class's key, or what the checkpoint's own code calls it where that is absent.
inline const char* kimi_key(const Reader& v, const char* key, const char* of_checkpoint) {
  return !v.given(key) && v.given(of_checkpoint) ? of_checkpoint : key;
}

/// Kimi_K25VisionConfig.
inline MoonVit read_moonvit(const Reader& v) {
  MoonVit d;
  const auto size = [&](const char* key, const char* of_checkpoint, std::int64_t absent, std::int64_t most) {
    return v.integer(kimi_key(v, key, of_checkpoint), absent, 1, most);
  };
  d.hidden = size("hidden_size", "vt_hidden_size", d.hidden, 1 << 20);
  d.intermediate = size("intermediate_size", "vt_intermediate_size", d.intermediate, 1 << 24);
  d.layers = v.layers(kimi_key(v, "num_hidden_layers", "vt_num_hidden_layers"), d.layers);
  const char* heads = kimi_key(v, "num_attention_heads", "vt_num_attention_heads");
  d.heads = v.integer(heads, d.heads, 1, 1 << 16);
  d.patch_size = v.side("patch_size", d.patch_size);
  d.table_rows = size("pos_emb_height", "init_pos_emb_height", d.table_rows, 1 << 14);
  const char* cols = kimi_key(v, "pos_emb_width", "init_pos_emb_width");
  d.table_cols = v.integer(cols, d.table_cols, 1, 1 << 14);
  d.table_times = size("pos_emb_time", "init_pos_emb_time", d.table_times, 1 << 14);
  const std::vector<std::int64_t> merge = v.integers("merge_kernel_size", {2, 2});
  if (merge.size() != 2 || merge[0] != merge[1] || merge[0] < 1 || merge[0] > 64)
    v.fail("merge_kernel_size", "expected rows and columns of patches, as many of either",
           "the processor fills pictures up to squares");
  d.merge = merge[0];
  d.activation = parse_activation(v.string("hidden_act", "gelu_pytorch_tanh"));
  divides(v, heads, d.hidden, d.heads);
  if (d.hidden / d.heads % 4 != 0) v.fail(heads, "rotation over two axes needs a head size that is a multiple of 4");
  if (d.table_cols < d.table_rows)
    v.fail(cols, "the table is read as a square of pos_emb_height rows", "give at least that many columns");
  return d;
}

/// model_type "kimi_k25". Checkpoints call their language model's type "kimi_k2".
inline Vlm read_kimi_k25(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  KimiK25Family f;
  f.vision = read_moonvit(v);
  const std::string type = t.string("model_type", "deepseek_v3");
  f.language = read_decoder(t, type == "kimi_k2" ? "deepseek_v3" : type);
  const bool own = !r.given("projection_hidden_size") && v.given("mm_hidden_size");
  f.projector = {
      .in = own ? v.integer("mm_hidden_size", 1152, 1, 1 << 20) : r.integer("projection_hidden_size", 1152, 1, 1 << 20),
      .merged = f.vision.merged(),
      .out = width(f.language)};
  if (f.projector.in != f.vision.hidden)
    r.fail("projection_hidden_size",
           "the projector's norm takes rows of the tower: " + std::to_string(f.vision.hidden) + " channels",
           "give the vision_config's hidden_size");
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "kimi_k25"};
  m.image_processor = image_processor::KimiK25{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::KimiK25& rule) {
  image.number("max_patches", rule.max_patches);
  image.number("max_height", rule.max_height, 1, 1 << 16);
}
/// Kimi_K25ImageProcessor; media_proc_cfg is of the checkpoint's own code, and means nothing to that class.
inline void read_image_keys(ProcessorKeys& k, image_processor::KimiK25& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.merge_kernel_size");
  rule.max_patches = k.integer("max_patches", 16384, 1, std::int64_t{1} << 40);
  if (k.given("size")) {
    const Reader size = k.object("size");
    rule.max_height = size.integer_required("max_height", 1, 1 << 16);
    if (size.integer_required("max_width", 1, 1 << 16) != rule.max_height)
      size.fail("max_width", "the processor takes squares alone", "give max_height and max_width of one value");
  }
  k.ignore({"media_proc_cfg"});
}
inline void read_outer_keys(ProcessorKeys&, image_processor::KimiK25&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct KimiK25 {
  static constexpr std::string_view folder = "kimi_k25";
  static constexpr std::array types{json::ModelType{
      .type = "kimi_k25", .read = json::hf::read_kimi_k25, .recorder = json::RecorderInputs{"native.kimi_k25", 448}}};
  using Rules = json::Rules<image_processor::KimiK25>;
};

}  // namespace vlmest::family
