// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include <vlmest/json/hf/quantization/common.hpp>

/// quant_method modelopt: what NVIDIA's Model Optimizer writes, into config.json or a hf_quant_config.json beside it
/// (modelopt/torch/export/convert_hf_config.py). transformers has no quantizer for it; the tensors are those of the
/// checkpoint, which serving engines keep (vLLM model_executor/layers/quantization/modelopt.py).
namespace vlmest::json::hf {

/// modelopt excludes modules by names with wildcards.
inline void add_wildcards(std::vector<ModuleRule>& rules, const Reader& r, const char* key) {
  for (const auto& n : names(r, key))
    rules.emplace_back(n, n.find('*') == std::string::npos ? ModuleRule::Kind::name : ModuleRule::Kind::wildcard,
                       r.path() + "." + key);
}

/// How the weights of an algorithm lie; `r` has its group_size, where there is one. Weights of 4 bits have the scale of
/// their input beside them, whether it is used or not.
inline WeightStorage modelopt_storage(const Reader& r, const std::string& algorithm) {
  if (algorithm == "FP8")
    return Fp8Weight{.scales = Fp8Weight::Scales::tensor, .static_activations = true, .scale_name = "weight_scale"};
  if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN")
    return Fp8Weight{.scales = Fp8Weight::Scales::channel, .scale_name = "weight_scale"};
  if (algorithm == "FP8_PB_WO") return Fp8Weight{.scale_name = "weight_scale"};
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4") {
    if (group_size(r, "group_size", 16) != 16) r.fail("group_size", "groups of NVFP4 are of 16 inputs");
    return Fp4Weight{.group = 16, .static_activations = true, .modelopt = true};
  }
  r.fail("quant_algo", algorithm.empty() ? "missing" : "unknown '" + algorithm.substr(0, 64) + "'",
         "known: FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, MIXED_PRECISION");
}

/// quantized_layers: modules by their whole names, an algorithm each. Those of one algorithm are a group.
inline Quantization mixed_precision(const Reader& r) {
  if (!r.given("quantized_layers"))
    r.fail("quantized_layers", "missing, but MIXED_PRECISION means what each module of it has",
           "hf_quant_config.json beside the weights has them");
  const Reader layers = r.object("quantized_layers");
  std::map<std::string, StorageGroup> groups;
  for (const auto& [name, value] : layers.value().items()) {
    const Reader layer = layers.object(name.c_str());
    const std::string algorithm = layer.string("quant_algo", "");
    StorageGroup& group = groups[algorithm];
    group.storage = modelopt_storage(layer, algorithm);
    group.modules.push_back(name);
    group.where = r.path() + ".quantized_layers";
  }
  Quantization q{.method = "modelopt"};
  std::string algorithms;
  for (auto& [algorithm, group] : groups) {
    algorithms += (algorithms.empty() ? "" : ", ") + algorithm;
    std::sort(group.modules.begin(), group.modules.end());
    q.groups.push_back(std::move(group));
  }
  q.summary = "modelopt MIXED_PRECISION (" + algorithms + ") as serving engines keep it";
  return q;
}

/// Of the head, modelopt's own exports name it.
inline Quantization read_modelopt(const Reader& whole) {
  const Reader r = whole.given("quantization") ? whole.object("quantization") : whole;
  const std::string algorithm = r.string("quant_algo", "");
  Quantization q = algorithm == "MIXED_PRECISION"
                       ? mixed_precision(r)
                       : one_storage("modelopt", "modelopt " + algorithm + " as serving engines keep it",
                                     modelopt_storage(r, algorithm));
  q.experts = true;
  q.head = true;
  add_wildcards(q.skipped, r, "exclude_modules");
  add_wildcards(q.skipped, r, "ignore");
  for (const char* key : {"kv_cache_quant_algo", "kv_cache_scheme"})
    if (r.given(key))
      q.notes.push_back(r.path() + "." + key + " is not applied; plan.kv says what the cache is kept in");
  note_unknown(q, r,
               {"quant_algo", "group_size", "exclude_modules", "ignore", "kv_cache_quant_algo", "kv_cache_scheme",
                "quantized_layers"},
               {"config_groups", "producer", "quantization", "quant_library", "version"});
  return q;
}

}  // namespace vlmest::json::hf
