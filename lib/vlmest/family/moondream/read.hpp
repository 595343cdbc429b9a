// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include <vlmest/family/moondream/family.hpp>
#include <vlmest/family/moondream/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// A size that Moondream's functions count on without reading it.
inline void moondream_fixed(const Reader& r, const char* key, std::int64_t value, const char* why) {
  const std::int64_t n = r.integer(key, value);
  if (n != value) r.fail(key, std::to_string(n) + ", but " + why, "give " + std::to_string(value));
}
/// Weights that QuantizedLinear packs four bits each.
inline void no_moondream_groups(const Reader& r) {
  if (r.given("group_size"))
    r.fail("group_size", "Moondream's int4 checkpoints are not modelled", "leave it out: the nearest is the bf16 one");
}

/// TextConfig.
inline MoondreamText read_moondream_text(const Reader& r) {
  only_keys(r, {"dim", "ff_dim", "n_layers", "vocab_size", "max_context", "n_heads", "n_kv_heads", "prefix_attn",
                "group_size"});
  no_moondream_groups(r);
  MoondreamText d;
  d.hidden = r.integer("dim", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("ff_dim", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("n_layers", d.layers);
  d.vocab = r.integer("vocab_size", d.vocab, 1, 1 << 24);
  d.heads = r.integer("n_heads", d.heads, 1, 1 << 14);
  d.kv_heads = r.integer("n_kv_heads", d.kv_heads, 1, 1 << 14);
  moondream_fixed(r, "max_context", d.context, "masks of a decode step are 2048 positions long (moondream.py)");
  if (d.hidden != d.heads * d.head_dim)
    r.fail("n_heads",
           std::to_string(d.heads) + " heads of " + std::to_string(d.hidden) +
               " channels, but apply_rotary_emb turns 32 channels, half of a head",
           "give dim / 64");
  if (d.heads % d.kv_heads != 0)
    r.fail("n_kv_heads", std::to_string(d.kv_heads) + " does not divide n_heads " + std::to_string(d.heads));
  return d;
}

/// VisionConfig; `width` is the language model's.
inline MoondreamVision read_moondream_vision(const Reader& r, std::int64_t width) {
  only_keys(r, {"enc_dim", "enc_patch_size", "enc_n_layers", "enc_ff_dim", "enc_n_heads", "proj_out_dim", "crop_size",
                "in_channels", "max_crops", "overlap_margin", "proj_inner_dim"});
  MoondreamVision d;
  d.hidden = r.integer("enc_dim", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("enc_ff_dim", d.intermediate, 1, 1 << 24);
  d.heads = r.integer("enc_n_heads", d.heads, 1, 1 << 14);
  divides(r, "enc_n_heads", d.hidden, d.heads);
  d.inner = r.integer("proj_inner_dim", d.inner, 1, 1 << 24);
  d.max_crops = r.integer("max_crops", d.max_crops, 1, image_processor::max_tile_count);
  d.margin = r.integer("overlap_margin", d.margin, 0, d.side / 2);
  moondream_fixed(r, "enc_patch_size", d.patch_size, "overlap_crop_image counts patches of 14 pixels");
  moondream_fixed(r, "crop_size", d.side * d.patch_size, "overlap_crop_image makes crops of 378 pixels");
  moondream_fixed(r, "in_channels", d.channels, "pictures have 3 channels");
  moondream_fixed(r, "enc_n_layers", d.side, "features are put together as enc_n_layers rows of as many patches");
  moondream_fixed(r, "proj_out_dim", width, "features stand beside the embedding of the first token: text.dim");
  return d;
}

/// RegionConfig; `width` is the language model's.
inline MoondreamRegion read_moondream_region(const Reader& r, std::int64_t width) {
  only_keys(r, {"dim", "coord_feat_dim", "coord_out_dim", "size_feat_dim", "size_out_dim", "inner_dim", "group_size"});
  no_moondream_groups(r);
  MoondreamRegion d;
  moondream_fixed(r, "dim", width, "it reads and makes hidden states: text.dim");
  d.coordinate_features = r.integer("coord_feat_dim", d.coordinate_features, 2, 1 << 20);
  d.coordinate_bins = r.integer("coord_out_dim", d.coordinate_bins, 1, 1 << 20);
  d.size_features = r.integer("size_feat_dim", d.size_features, 2, 1 << 20);
  d.size_bins = r.integer("size_out_dim", d.size_bins, 1, 1 << 20);
  d.inner = r.integer("inner_dim", d.inner, 1, 1 << 24);
  return d;
}

/// model_type "moondream1": HfMoondream of vikhyatk/moondream2. Its config.json says no sizes, which are the code's
/// own; `config` says others as MoondreamConfig.from_dict takes them (moondream/config/config_md05.json). The code of
/// 2024 called the same model_type Phi with a text_config.
inline Vlm read_moondream1(const Reader& r) {
  for (const char* key : {"text_config", "phi_config", "vision_config"})
    if (r.given(key))
      r.fail(key, "Moondream's code of 2024, Phi with a text_config, is not modelled",
             "the nearest that is known is moondream2 of revision 2025-06-21, whose config.json says no sizes");
  const Reader sizes = r.object("config");
  only_keys(sizes, {"text", "vision", "region", "tokenizer"});
  MoondreamFamily f;
  f.language = read_moondream_text(sizes.object("text"));
  f.vision = read_moondream_vision(sizes.object("vision"), f.language.hidden);
  f.region = read_moondream_region(sizes.object("region"), f.language.hidden);
  Vlm m{.type = "moondream1"};
  m.image_processor = image_processor::Moondream{.max_tiles = f.vision.max_crops, .margin = f.vision.margin};
  m.native = {f.vision.side * f.vision.patch_size, f.vision.side * f.vision.patch_size};
  m.positions = f.language.context;
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Moondream& rule) { image.max_tiles(rule.max_tiles); }
inline void read_image_keys(ProcessorKeys&, image_processor::Moondream&) {}
inline void read_outer_keys(ProcessorKeys&, image_processor::Moondream&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Moondream {
  static constexpr std::string_view folder = "moondream";
  static constexpr std::array types{
      json::ModelType{.type = "moondream1",
                      .read = json::hf::read_moondream1,
                      .recorder = json::not_recorded,
                      .remote_code = true,
                      .no_processor_file = "sets no crops: the checkpoint's own code cuts pictures by itself"}};
  using Rules = json::Rules<image_processor::Moondream>;
};

}  // namespace vlmest::family
