// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <vlmest/family/nemotron_h_vl/radio.hpp>
#include <vlmest/json/hf/vision.hpp>

/// vision_config, whose `args` are those that C-RADIO was trained with: NVlabs/RADIO radio/hf_model.py, RADIOModel, and
/// radio/radio_model.py, create_model_from_args.
namespace vlmest::json::hf {

/// timm's transformers of patches of 16 pixels (timm 1.0 models/vision_transformer.py), and RADIO's own
/// (radio/extra_timm_models.py).
struct RadioArchitecture {
  std::string_view name;
  std::int64_t hidden, layers, heads;
};
inline constexpr std::array radio_architectures{
    RadioArchitecture{"vit_tiny_patch16_224", 192, 12, 3}, RadioArchitecture{"vit_small_patch16_224", 384, 12, 6},
    RadioArchitecture{"vit_base_patch16_224", 768, 12, 12}, RadioArchitecture{"vit_large_patch16_224", 1024, 24, 16},
    RadioArchitecture{"vit_huge_patch16_224", 1280, 32, 16}};

/// model, and of model_kwargs the sizes that it gives otherwise.
inline void read_radio_layers(const Reader& a, RadioVision& g) {
  const std::string name = a.string("model", "");
  const auto at = std::ranges::find(radio_architectures, name, &RadioArchitecture::name);
  if (at == radio_architectures.end())
    a.fail("model", "'" + name.substr(0, 64) + "' is not modelled",
           "known: vit_tiny_patch16_224, vit_small_patch16_224, vit_base_patch16_224, vit_large_patch16_224, "
           "vit_huge_patch16_224");
  const Reader k = a.object("model_kwargs");
  k.without_effect({"weight_init"});
  g.hidden = k.integer("embed_dim", at->hidden, 1, 1 << 20);
  g.layers = k.layers("depth", at->layers);
  g.heads = k.integer("num_heads", at->heads, 1, 1 << 16);
  divides(k, "num_heads", g.hidden, g.heads);
  const double ratio = k.number("mlp_ratio", 4.0);
  if (!(ratio > 0.0 && ratio <= 1024.0)) k.fail("mlp_ratio", "must lie between 0 and 1024");
  g.intermediate = static_cast<std::int64_t>(static_cast<double>(g.hidden) * ratio);
  if (g.intermediate < 1) k.fail("mlp_ratio", "leaves an MLP without channels");
  for (const auto& [key, value] : k.value().items())
    if (!value.is_null() && key != "embed_dim" && key != "depth" && key != "num_heads" && key != "mlp_ratio" &&
        key != "weight_init")
      k.fail(key.substr(0, 64).c_str(), "such layers are not modelled", "leave it out");
}

/// Class tokens, one for each name among the teachers, and registers behind them (ClsToken.__init__). Throws Error for
/// a summary that no class token is there for: the model would stop at it.
inline void read_radio_tokens(const Reader& a, RadioVision& g) {
  if (!a.given("teachers") || !a.value()["teachers"].is_array() || a.value()["teachers"].empty())
    a.fail("teachers", "expected a list of the models that it was trained after");
  std::set<std::string> names;
  std::int64_t last = -1, at = 0;
  g.summaries = 0;
  for (const auto& teacher : a.value()["teachers"]) {
    if (!teacher.is_object()) a.fail("teachers", "expected objects with a name");
    const Reader t(teacher, a);
    names.insert(t.string("name", ""));
    if (t.boolean("use_summary", true)) ++g.summaries, last = at;
    ++at;
  }
  g.class_tokens = a.boolean("cls_token_per_teacher", true) ? static_cast<std::int64_t>(names.size()) : 1;
  if (last >= g.class_tokens)
    a.fail("teachers",
           "a summary of teacher " + std::to_string(last + 1) + ", but there are " + std::to_string(g.class_tokens) +
               " class tokens",
           "set use_summary to false, or cls_token_per_teacher to true");
  const auto count = [&](const char* key) { return a.integer(key, 0, 0, 1 << 16); };
  const std::int64_t multiple = count("register_multiple"), own = count("cpe_num_registers");
  g.registers = own > 0 ? own : multiple > 0 ? multiple - g.class_tokens % multiple : 0;
}

/// What would build another tower.
inline void check_radio(const Reader& v, const Reader& a) {
  for (const char* key : {"adaptor_names", "feature_normalizer_config", "inter_feature_normalizer_config"})
    if (v.given(key) && !v.value()[key].empty())
      v.fail(key, "such outputs of C-RADIO are not modelled", "leave it out, as NVIDIA's checkpoints do");
  if (v.given("vitdet_window_size"))
    v.fail("vitdet_window_size", "attention within windows is not modelled", "leave it out");
  if (a.boolean("model_norm", false))
    a.fail("model_norm", "a norm behind the blocks is not modelled", "leave it out, as NVIDIA's checkpoints do");
  for (const char* key : {"spectral_reparam", "spectral_heads"})
    if (a.boolean(key, false))
      a.fail(key, "weights that are made anew in each step are not modelled", "set it to false");
  for (const char* key : {"drop", "drop_path", "drop_block"})
    if (a.number(key, 0.0) != 0.0) a.fail(key, "dropout of this tower is not modelled", "set it to 0");
  if (a.integer("in_chans", a.integers("input_size", {3}).empty() ? 3 : a.integers("input_size", {3}).front()) != 3)
    a.fail("in_chans", "pictures have 3 channels", "leave it out");
  if (const std::string pool = a.string("gp", "token"); pool != "token" && !pool.empty())
    a.fail("gp", "'" + pool.substr(0, 64) + "' makes modules that nothing runs, which are not modelled",
           "leave it out");
  for (const auto& [key, value] : a.value().items()) a.has(key.c_str());  // what training took, which builds nothing
  v.without_effect({"adaptor_configs", "version", "max_resolution", "preferred_resolution", "use_flash_attn"});
}

/// `side`: force_image_size, of a tile.
inline RadioVision read_radio(const Reader& v, std::int64_t side) {
  const Reader a = v.object("args");
  if (!v.given("args")) v.fail("args", "missing", "give those that the checkpoint's config.json has");
  check_radio(v, a);
  RadioVision g;
  read_radio_layers(a, g);
  read_radio_tokens(a, g);
  g.image_size = side;
  if (v.integer("patch_size", g.patch_size, 1, 1 << 16) != g.patch_size)
    v.fail("patch_size", "the tower's patches have " + std::to_string(g.patch_size) + " pixels");
  if (!a.given("cpe_max_size"))
    a.fail("cpe_max_size", "null: timm's own positions are not modelled", "give 2048, as NVIDIA's checkpoints do");
  const std::int64_t most = a.integer("cpe_max_size", 2048, 1, 1 << 16);
  g.max_size = most;
  constexpr std::int64_t of_timm = 224;
  if (most % g.patch_size != 0 || most == of_timm)
    a.fail("cpe_max_size",
           "no multiple of " + std::to_string(g.patch_size) +
               " pixels, or timm's 224, whose positions are cut, not "
               "resampled",
           "give 2048, as NVIDIA's checkpoints do");
  return g;
}

}  // namespace vlmest::json::hf
