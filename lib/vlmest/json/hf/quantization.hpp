// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/hf/quantization/compressed_tensors.hpp>
#include <vlmest/json/hf/quantization/floating.hpp>
#include <vlmest/json/hf/quantization/integer.hpp>
#include <vlmest/json/hf/quantization/modelopt.hpp>
#include <vlmest/json/known_keys.hpp>

/// What a config.json says of the storage of its weights, whatever the model is.
namespace vlmest::json::hf {

/// One quant_method and its reader. A new one is one line.
struct QuantizationEntry {
  std::string_view method;
  Quantization (*read)(const Reader&);
};
inline constexpr std::array quantizations{
    QuantizationEntry{"awq", read_awq},
    QuantizationEntry{"gptq", read_gptq},
    QuantizationEntry{"auto-round", read_auto_round},
    QuantizationEntry{"eetq", read_eetq},
    QuantizationEntry{"bitsandbytes", read_bitsandbytes},
    QuantizationEntry{"fp8", read_fp8},
    QuantizationEntry{"fbgemm_fp8", read_fbgemm_fp8},
    QuantizationEntry{"mxfp4", read_mxfp4},
    QuantizationEntry{"compressed-tensors", read_compressed_tensors},
    QuantizationEntry{"modelopt", read_modelopt},
};

struct QuantizationSection {
  Reader keys;
  bool of_language_model = false;
};

/// quantization_config, or what checkpoints call it else: of the whole config, or of its language model.
inline std::optional<QuantizationSection> quantization_section(const Reader& r) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (r.given(key)) return QuantizationSection{r.object(key)};
    for (const char* part : {"text_config", "llm_config"})
      if (r.given(part) && r.value()[part].is_object() && r.object(part).given(key))
        return QuantizationSection{r.object(part).object(key), true};
  }
  return std::nullopt;
}

/// The keys of a section as a value. A method or a setting that is not known is told where the storage is asked for:
/// Plan::weights can stand in for it.
inline Quantization read_quantization_keys(const Reader& s, std::string method) {
  if (method.empty() && (s.given("load_in_4bit") || s.given("load_in_8bit"))) method = "bitsandbytes";
  if (method.empty() && (s.given("quant_algo") || s.given("quantization"))) method = "modelopt";
  if (method.empty() && s.given("config_groups")) method = "compressed-tensors";
  if (method.starts_with("bitsandbytes_")) method = "bitsandbytes";
  if (method == "compressed_tensors") method = "compressed-tensors";
  if (method == "modelopt_fp4" || method == "modelopt_fp8") method = "modelopt";
  std::vector<std::string_view> known;
  for (const auto& e : quantizations) {
    if (e.method == method) try {
        return e.read(s);
      } catch (const Error& fault) {
        Quantization q{.method = method};
        q.refused.emplace(fault.where, fault.what_happened,
                          fault.hint + (fault.hint.empty() ? "" : "; or ") + "give plan.weights=TYPE");
        return q;
      }
    known.push_back(e.method);
  }
  Quantization q{.method = method.substr(0, 64)};
  q.refused.emplace(s.path() + ".quant_method",
                    method.empty() ? "missing" : "weights stored by '" + q.method + "' are not known",
                    known_words(method, known) + "; or give plan.weights=TYPE");
  return q;
}

inline std::optional<Quantization> read_quantization(const Reader& r) {
  const std::optional<QuantizationSection> section = quantization_section(r);
  if (!section || section->keys.value().empty()) return std::nullopt;
  Quantization q = read_quantization_keys(section->keys, section->keys.string("quant_method", ""));
  if (section->of_language_model) q.language_layers_only = true;
  return q;
}

/// torch_dtype, or dtype as transformers 5 writes it: of the whole config, or of its language model. "auto" says
/// nothing.
inline std::optional<DType> read_dtype(const Reader& r) {
  const auto of = [](const Reader& c) -> std::optional<DType> {
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!c.given(key)) continue;
      std::string s = c.string(key, "");
      if (s.starts_with("torch.")) s = s.substr(6);
      if (s == "auto") continue;
      if (s == "bfloat16" || s == "bf16") return DType::bf16;
      if (s == "float16" || s == "half" || s == "fp16") return DType::fp16;
      if (s == "float32" || s == "float" || s == "fp32") return DType::fp32;
      c.fail(key, "'" + s.substr(0, 64) + "' is no type that a model computes in",
             "bfloat16, float16, float32 or auto; what the weights are stored in stands in quantization_config");
    }
    return std::nullopt;
  };
  if (const auto t = of(r)) return t;
  for (const char* part : {"text_config", "llm_config"})
    if (r.given(part) && r.value()[part].is_object())
      if (const auto t = of(r.object(part))) return t;
  return std::nullopt;
}

}  // namespace vlmest::json::hf
