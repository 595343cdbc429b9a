// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <vlmest/family/perception_lm/vision_config.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>

/// TimmWrapperConfig around a Perception Encoder: transformers 5.17 models/timm_wrapper/configuration_timm_wrapper.py,
/// timm 1.0 models/eva.py.
namespace vlmest::json::hf {

/// One of timm's models, by the start of its name: what arguments do not say.
struct EvaArchitecture {
  std::string_view name;
  std::int64_t hidden, layers, heads, patch_size, image_size;
  double ratio;  ///< of the MLP
  bool class_token, scaled;
};
inline constexpr double eva_gigantic_ratio = 8960.0 / 1536.0;
/// vit_pe_core_… pools by attention, vit_pe_lang_… and vit_pe_spatial_… by means, without a norm behind the layers.
inline constexpr std::array eva_architectures{
    EvaArchitecture{"vit_pe_core_tiny_patch16_384", 192, 12, 3, 16, 384, 4.0, true, false},
    EvaArchitecture{"vit_pe_core_small_patch16_384", 384, 12, 6, 16, 384, 4.0, true, false},
    EvaArchitecture{"vit_pe_core_base_patch16_224", 768, 12, 12, 16, 224, 4.0, true, false},
    EvaArchitecture{"vit_pe_core_large_patch14_336", 1024, 24, 16, 14, 336, 4.0, true, false},
    EvaArchitecture{"vit_pe_core_gigantic_patch14_448", 1536, 50, 16, 14, 448, eva_gigantic_ratio, false, false},
    EvaArchitecture{"vit_pe_lang_large_patch14_448", 1024, 23, 16, 14, 448, 4.0, true, true},
    EvaArchitecture{"vit_pe_lang_gigantic_patch14_448", 1536, 47, 16, 14, 448, eva_gigantic_ratio, false, true},
    EvaArchitecture{"vit_pe_spatial_tiny_patch16_512", 192, 12, 3, 16, 512, 4.0, true, false},
    EvaArchitecture{"vit_pe_spatial_small_patch16_512", 384, 12, 6, 16, 512, 4.0, true, false},
    EvaArchitecture{"vit_pe_spatial_base_patch16_512", 768, 12, 12, 16, 512, 4.0, true, false},
    EvaArchitecture{"vit_pe_spatial_large_patch14_448", 1024, 24, 16, 14, 448, 4.0, true, false},
    EvaArchitecture{"vit_pe_spatial_gigantic_patch14_448", 1536, 50, 16, 14, 448, eva_gigantic_ratio, false, true}};

/// A tag behind the name chooses weights alone.
inline EvaArchitecture read_eva_architecture(const Reader& v) {
  const std::string given = v.string("architecture", "resnet50");
  const std::string_view name = std::string_view(given).substr(0, given.find('.'));
  const auto at = std::ranges::find(eva_architectures, name, &EvaArchitecture::name);
  if (at != eva_architectures.end()) return *at;
  v.fail("architecture", "'" + given.substr(0, 64) + "' is not modelled",
         "known: timm's Perception Encoders, as vit_pe_core_large_patch14_336 and vit_pe_lang_gigantic_patch14_448");
}

/// Arguments under which timm builds other layers.
inline void check_eva_layers(const Reader& a) {
  const auto only = [&](const char* key, bool value) {
    if (a.boolean(key, value) != value) a.fail(key, "such layers are not modelled", "leave it out");
  };
  only("qkv_fused", true);
  for (const char* key : {"swiglu_mlp", "scale_mlp", "scale_attn_inner", "use_post_norm", "dynamic_img_size",
                          "dynamic_img_pad", "use_naflex", "features_only"})
    only(key, false);
  if (a.integer("num_reg_tokens", 0, 0, 1 << 16) > 0)
    a.fail("num_reg_tokens", "PerceptionLM would take them for patches, whose number its processor does not write",
           "leave it out");
  if (read_dropout(a, "patch_drop_rate", 0.0))
    a.fail("patch_drop_rate", "dropped patches are not modelled", "set it to 0");
  if (a.string("attn_type", "rope") != "rope") a.fail("attn_type", "such attention is not modelled", "leave it out");
  if (a.string("rope_type", "cat") != "cat") a.fail("rope_type", "such positions are not modelled", "leave it out");
  if (a.boolean("rope_rotate_half", false)) a.fail("rope_rotate_half", "such rotation is not modelled", "leave it out");
  a.without_effect({"ref_feat_shape", "rope_grid_offset", "rope_grid_indexing", "rope_temperature", "head_init_scale",
                    "num_classes", "swiglu_align_to"});
}

/// global_pool, and what each one means for the norms behind the layers (Eva.__init__).
inline void read_eva_pool(const Reader& a, std::string_view absent, EvaVision& g) {
  constexpr std::array<std::string_view, 6> words{"", "token", "avg", "max", "avgmax", "map"};
  const std::string word = a.string("global_pool", absent);
  const auto at = std::ranges::find(words, word);
  if (at == words.end())
    a.fail("global_pool", "unknown '" + word.substr(0, 64) + "'", "known: \"\", token, avg, max, avgmax, map");
  g.pool = static_cast<EvaPool>(at - words.begin());
}

/// vision_config, whose model_args are arguments of timm's create_model, which takes those that are null for left out
/// (timm 1.0 models/_factory.py); their width is what the projector takes.
inline EvaVision read_eva_vision(const Reader& v) {
  check_part(v, "timm_wrapper");
  v.without_effect({"num_classes", "num_features", "global_pool", "label_names", "pretrained_cfg"});
  const EvaArchitecture t = read_eva_architecture(v);
  const bool core = t.name.starts_with("vit_pe_core");
  const Reader a = v.object("model_args");
  check_eva_layers(a);
  EvaVision g;
  if (!a.given("embed_dim"))
    a.fail("embed_dim", "missing, but PerceptionLM's projector asks for it", "give " + std::to_string(t.hidden));
  g.hidden = a.integer("embed_dim", t.hidden, 1, 1 << 20);
  g.layers = a.layers("depth", t.layers);
  g.heads = a.integer("num_heads", t.heads, 1, 1 << 16);
  g.patch_size = a.side("patch_size", t.patch_size);
  g.image_size = a.side("img_size", t.image_size);
  if (g.patch_size > g.image_size) a.fail("img_size", "smaller than a patch");
  if (a.integer("in_chans", 3, 1, 1 << 10) != 3) a.fail("in_chans", "pictures have 3 channels", "leave it out");
  if (g.hidden % g.heads != 0 || g.head_dim() % 4 != 0)
    a.fail("num_heads",
           std::to_string(g.hidden) + " channels are no heads of a multiple of 4 that turn by rows and columns",
           "choose embed_dim as a multiple of 4 * num_heads");
  const auto inner = [&](const char* key, double absent) {
    const double ratio = a.number(key, absent);
    if (!(ratio > 0.0 && ratio <= 1024.0)) a.fail(key, "must lie between 0 and 1024");
    const auto n = static_cast<std::int64_t>(static_cast<double>(g.hidden) * ratio);
    if (n < 1) a.fail(key, "leaves an MLP without channels");
    return n;
  };
  g.intermediate = inner("mlp_ratio", t.ratio);
  g.class_token = a.boolean("class_token", t.class_token);
  g.positions = a.boolean("use_abs_pos_emb", true);
  g.class_position = !a.boolean("no_embed_class", false);
  g.rotates = a.boolean("use_rot_pos_emb", true);
  g.qkv_bias = a.boolean("qkv_bias", true);
  g.scaled = a.given("init_values") || t.scaled;
  a.number("init_values", 0.1);
  g.pre_norm = a.boolean("use_pre_transformer_norm", true);
  read_eva_pool(a, core ? "map" : "avg", g);
  // Only vit_pe_core_… leaves both to the pool.
  g.pool_norm = a.boolean("use_fc_norm", core && g.pool == EvaPool::mean);
  g.post_norm = a.boolean("use_post_transformer_norm", core && !g.pool_norm);
  g.pool_heads = a.integer("attn_pool_num_heads", core ? 8 : g.heads, 1, 1 << 16);
  g.pool_intermediate = inner("attn_pool_mlp_ratio", core ? 4.0 : a.number("mlp_ratio", t.ratio));
  if (g.pool == EvaPool::attention && g.hidden % g.pool_heads != 0)
    a.fail("attn_pool_num_heads", "does not divide embed_dim", "choose one that does");
  g.pools = v.boolean("do_pooling", true);
  g.position_dropout = read_dropout(a, "pos_drop_rate", 0.0);
  g.projection_dropout = read_dropout(a, "proj_drop_rate", 0.0);
  g.attention_dropout = read_dropout(a, "attn_drop_rate", 0.0);
  g.pool_dropout = read_dropout(a, "drop_rate", 0.0);
  g.drop_path = read_dropout(a, "drop_path_rate", 0.0);
  return g;
}

}  // namespace vlmest::json::hf
