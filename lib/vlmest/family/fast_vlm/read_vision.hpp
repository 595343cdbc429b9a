// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/family/fast_vlm/config.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/unit/count.hpp>

/// The tower's part of FastVLM's config.json: a name of timm's and arguments that take the place of those that it
/// stands for (transformers 5.17, models/timm_wrapper/configuration_timm_wrapper.py).
namespace vlmest::json::hf {

/// An architecture of timm 1.0.29 models/fastvit.py. Those with five stages norm positions in front of attention.
struct FastVitArchitecture {
  std::string_view name;
  std::array<std::int64_t, 5> layers, dims;
  std::int64_t ratio = 4;       ///< mlp_ratios, all alike
  int attending = 0;            ///< stages with attention and positions, the last ones
  bool squeezes = false;        ///< se_downsamples of the third stage and the fourth
  bool down_activates = false;  ///< lkc_use_act
  int stages() const { return dims[4] > 0 ? 5 : 4; }
};
inline constexpr std::array fastvit_architectures{
    FastVitArchitecture{"fastvit_t8", {2, 2, 4, 2}, {48, 96, 192, 384}, 3},
    FastVitArchitecture{"fastvit_t12", {2, 2, 6, 2}, {64, 128, 256, 512}, 3},
    FastVitArchitecture{"fastvit_s12", {2, 2, 6, 2}, {64, 128, 256, 512}},
    FastVitArchitecture{"fastvit_sa12", {2, 2, 6, 2}, {64, 128, 256, 512}, 4, 1},
    FastVitArchitecture{"fastvit_sa24", {4, 4, 12, 4}, {64, 128, 256, 512}, 4, 1},
    FastVitArchitecture{"fastvit_sa36", {6, 6, 18, 6}, {64, 128, 256, 512}, 4, 1},
    FastVitArchitecture{"fastvit_ma36", {6, 6, 18, 6}, {76, 152, 304, 608}, 4, 1},
    FastVitArchitecture{"fastvit_mci0", {2, 6, 10, 2}, {64, 128, 256, 512}, 3, 1, true, true},
    FastVitArchitecture{"fastvit_mci1", {4, 12, 20, 4}, {64, 128, 256, 512}, 3, 1, true, true},
    FastVitArchitecture{"fastvit_mci2", {4, 12, 24, 4}, {80, 160, 320, 640}, 3, 1, true, true},
    FastVitArchitecture{"fastvit_mci3", {2, 12, 24, 4, 2}, {96, 192, 384, 768, 1536}, 4, 2, false, true},
    FastVitArchitecture{"fastvit_mci4", {2, 12, 24, 4, 4}, {128, 256, 512, 1024, 2048}, 4, 2, false, true},
};

inline const FastVitArchitecture& fastvit_architecture(const Reader& r) {
  const std::string name = r.string("architecture", "resnet50");
  std::string known;
  for (const FastVitArchitecture& a : fastvit_architectures) {
    if (a.name == name) return a;
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  r.fail("architecture", "'" + name.substr(0, 64) + "' is not modelled", "known: " + known);
}

/// Arguments that are read, and those that must be absent or what the class has: they put modules there, or draws in
/// training, that are not modelled. timm.create_model drops those that are null.
inline void check_fastvit_arguments(const Reader& r) {
  static constexpr std::array known{"layers",          "embed_dims",
                                    "mlp_ratios",      "token_mixers",
                                    "downsamples",     "se_downsamples",
                                    "cls_ratio",       "repmixer_kernel_size",
                                    "down_patch_size", "down_stride",
                                    "lkc_use_act",     "stem_use_scale_branch",
                                    "inference_mode",  "layer_scale_init_value"};
  for (const char* rate : {"drop_rate", "proj_drop_rate", "drop_path_rate"})
    if (r.given(rate) && r.number(rate, 0) != 0)
      r.fail(rate, "what timm drops in training is not modelled", "0, as released");
  if (r.integer("in_chans", 3) != 3) r.fail("in_chans", "the processor makes pictures of 3 channels", "leave it out");
  if (r.string("global_pool", "avg") != "avg") r.fail("global_pool", "other than avg is not modelled", "leave it out");
  if (r.boolean("fork_feat", false)) r.fail("fork_feat", "the tower then gives a list of maps", "leave it out");
  for (const auto& [key, value] : r.value().items()) {
    const std::string_view name = key;
    const bool checked = name.starts_with("drop_") || name == "proj_drop_rate" || name == "in_chans" ||
                         name == "global_pool" || name == "fork_feat";
    if (!value.is_null() && !checked && std::find(known.begin(), known.end(), name) == known.end())
      r.fail(key.substr(0, 64).c_str(), "this argument of timm's is not modelled", "leave it out");
  }
}

/// Numbers of each stage, as many as there are.
template <class T>
std::vector<T> each_stage(const Reader& r, const char* key, std::vector<T> given, std::size_t stages) {
  if (given.size() != stages)
    r.fail(key, std::to_string(given.size()) + " entries for " + std::to_string(stages) + " stages",
           "one for each stage of the architecture");
  return given;
}

/// mlp_ratios: hidden channels of a stage's MLPs.
inline std::vector<std::int64_t> fastvit_inner(const Reader& r, const std::vector<std::int64_t>& dims,
                                               std::int64_t ratio) {
  std::vector<std::int64_t> inner;
  if (!r.given("mlp_ratios")) {
    for (const std::int64_t d : dims) inner.push_back(checked_mul(d, ratio));
    return inner;
  }
  const nlohmann::json& list = r.value()["mlp_ratios"];
  if (!list.is_array() || list.size() != dims.size()) r.fail("mlp_ratios", "expected a number for each stage");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const double times = list[i].is_number() ? list[i].get<double>() : 0;
    const double wide = std::floor(static_cast<double>(dims[i]) * times);
    if (!(wide >= 1 && wide <= 1 << 24)) r.fail("mlp_ratios", "expected positive numbers");
    inner.push_back(static_cast<std::int64_t>(wide));
  }
  return inner;
}

/// Whether a stage attends, by token_mixers.
inline std::vector<bool> fastvit_mixers(const Reader& r, const FastVitArchitecture& a, std::size_t stages) {
  std::vector<bool> attends;
  if (!r.given("token_mixers")) {
    for (std::size_t i = 0; i < stages; ++i) attends.push_back(i + static_cast<std::size_t>(a.attending) >= stages);
    return attends;
  }
  const nlohmann::json& list = r.value()["token_mixers"];
  if (!list.is_array() || list.size() != stages) r.fail("token_mixers", "expected a name for each stage");
  for (const nlohmann::json& name : list) {
    if (name != "repmixer" && name != "attention") r.fail("token_mixers", "unknown name", "repmixer, attention");
    attends.push_back(name == "attention");
  }
  return attends;
}

/// FastVit.__init__: a stage whose width changes halves the map, too.
inline std::vector<FastVitStageConfig> read_fastvit_stages(const Reader& r, const FastVitArchitecture& a) {
  const auto n = static_cast<std::size_t>(a.stages());
  std::vector<std::int64_t> layers(a.layers.begin(), a.layers.begin() + a.stages()),
      dims(a.dims.begin(), a.dims.begin() + a.stages());
  layers = each_stage(r, "layers", r.integers("layers", layers), n);
  dims = each_stage(r, "embed_dims", r.integers("embed_dims", dims), n);
  std::vector<bool> halves(n, true), squeezes(n, false);
  halves[0] = false;
  if (a.squeezes) squeezes[2] = squeezes[3] = true;
  halves = each_stage(r, "downsamples", r.booleans("downsamples", halves), n);
  squeezes = each_stage(r, "se_downsamples", r.booleans("se_downsamples", squeezes), n);
  const std::vector<std::int64_t> inner = fastvit_inner(r, dims, a.ratio);
  const std::vector<bool> attends = fastvit_mixers(r, a, n);
  std::vector<FastVitStageConfig> stages;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t before = dims[i > 0 ? i - 1 : 0];
    if (layers[i] < 1 || layers[i] > 1024) r.fail("layers", "expected 1 to 1024 of each stage");
    if (dims[i] < 1 || dims[i] > 1 << 20) r.fail("embed_dims", "expected positive widths");
    if (dims[i] % before != 0) r.fail("embed_dims", "filters of each channel need multiples of the stage before");
    if (attends[i] && dims[i] % 32 != 0) r.fail("embed_dims", "heads of 32 channels need multiples of it");
    stages.push_back({.layers = layers[i],
                      .dim = dims[i],
                      .inner = inner[i],
                      .downsample = halves[i] || dims[i] != before,
                      .squeeze = squeezes[i],
                      .attends = attends[i],
                      .positions = i + static_cast<std::size_t>(a.attending) >= n});
  }
  return stages;
}

/// Odd sides, which leave the map's as they are.
inline std::int64_t odd_side(const Reader& r, const char* key, std::int64_t absent) {
  const std::int64_t side = r.integer(key, absent, 3, 63);
  if (side % 2 == 0) r.fail(key, "filters of even sides are not modelled", "an odd number, as released");
  return side;
}

/// The vision_config, of model_type timm_wrapper.
inline FastVitVision read_fastvit(const Reader& r) {
  if (const std::string type = r.string("model_type", "timm_wrapper"); type != "timm_wrapper")
    r.fail("model_type", "'" + type.substr(0, 64) + "' is no tower of this model", "timm_wrapper");
  r.without_effect({"global_pool", "label_names", "num_classes", "num_features", "pretrained_cfg"});
  const FastVitArchitecture& a = fastvit_architecture(r);
  const Reader args = r.object("model_args");
  check_fastvit_arguments(args);
  FastVitVision v{.stages = read_fastvit_stages(args, a)};
  const double ratio = args.number("cls_ratio", 2.0);
  if (!(ratio > 0 && ratio <= 64)) args.fail("cls_ratio", "expected a number above 0, up to 64");
  const std::int64_t last = v.stages.back().dim;
  v.out = static_cast<std::int64_t>(static_cast<double>(last) * ratio);
  if (v.out < 1 || v.out % last != 0)
    args.fail("cls_ratio", "filters of each channel need a multiple of the last stage's width", "2");
  if (const std::int64_t said = r.integer_required("hidden_size"); said != v.out)
    r.fail("hidden_size", std::to_string(said) + ", but the tower's result has " + std::to_string(v.out) + " channels",
           std::to_string(v.out));
  v.mixer_side = odd_side(args, "repmixer_kernel_size", v.mixer_side);
  v.down_side = odd_side(args, "down_patch_size", v.down_side);
  v.down_stride = args.integer("down_stride", v.down_stride, 1, 16);
  v.down_activates = args.boolean("lkc_use_act", a.down_activates);
  v.stem_scale = args.boolean("stem_use_scale_branch", a.stages() < 5);
  v.layer_norm = a.stages() == 5;
  v.fused = args.boolean("inference_mode", false);
  v.pools = r.boolean("do_pooling", true);
  return v;
}

}  // namespace vlmest::json::hf
