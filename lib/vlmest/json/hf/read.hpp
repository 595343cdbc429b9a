// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/hf/aya_vision.hpp>
#include <vlmest/json/hf/blip2.hpp>
#include <vlmest/json/hf/causal_lm.hpp>
#include <vlmest/json/hf/cohere2_vision.hpp>
#include <vlmest/json/hf/gemma3.hpp>
#include <vlmest/json/hf/gemma4.hpp>
#include <vlmest/json/hf/glm4v.hpp>
#include <vlmest/json/hf/idefics3.hpp>
#include <vlmest/json/hf/internvl.hpp>
#include <vlmest/json/hf/internvl_chat.hpp>
#include <vlmest/json/hf/lighton_ocr.hpp>
#include <vlmest/json/hf/llava.hpp>
#include <vlmest/json/hf/llava_next.hpp>
#include <vlmest/json/hf/llava_onevision.hpp>
#include <vlmest/json/hf/mistral3.hpp>
#include <vlmest/json/hf/mllama.hpp>
#include <vlmest/json/hf/paligemma.hpp>
#include <vlmest/json/hf/quantization.hpp>
#include <vlmest/json/hf/qwen3_5.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/hf/text_class.hpp>
#include <vlmest/json/hf/vipllava.hpp>
#include <vlmest/json/known_keys.hpp>

namespace vlmest::json::hf {

/// One model_type and the function that reads its config.json. A new family is one line; language models alone:
/// json/hf/causal_lm.hpp.
struct Entry {
  std::string_view type;
  Vlm (*read)(const Reader&);
};
inline constexpr std::array families{
    Entry{"idefics3", read_idefics3},
    Entry{"smolvlm", read_smolvlm},
    Entry{"aya_vision", read_aya_vision},
    Entry{"cohere2_vision", read_cohere2_vision},
    Entry{"llava", read_llava},
    Entry{"llava_next", read_llava_next},
    Entry{"llava_onevision", read_llava_onevision},
    Entry{"vipllava", read_vipllava},
    Entry{"mistral3", read_mistral3},
    Entry{"lighton_ocr", read_lighton_ocr},
    Entry{"qwen2_vl", read_qwen2_vl},
    Entry{"qwen2_5_vl", read_qwen2_5_vl},
    Entry{"qwen3_vl", read_qwen3_vl},
    Entry{"qwen3_vl_moe", read_qwen3_vl_moe},
    Entry{"qwen3_5", read_qwen3_5},
    Entry{"qwen3_5_moe", read_qwen3_5_moe},
    Entry{"glm4v", read_glm4v},
    Entry{"glm46v", read_glm46v},
    Entry{"glm_ocr", read_glm_ocr},
    Entry{"blip-2", read_blip2},
    Entry{"internvl", read_internvl},
    Entry{"qianfan_ocr", read_qianfan_ocr},
    Entry{"internvl_chat", read_internvl_chat},
    Entry{"mllama", read_mllama},
    Entry{"paligemma", read_paligemma},
    Entry{"gemma3", read_gemma3},
    Entry{"gemma4", read_gemma4},
    Entry{"gemma4_unified", read_gemma4_unified},
};

/// Every model_type that is read: the families, then language models alone.
inline std::vector<std::string_view> known_types() {
  std::vector<std::string_view> r;
  for (const auto& e : families) r.push_back(e.type);
  for (const auto& e : causal_lms) r.push_back(e.type);
  for (const auto& e : other_causal_lms) r.push_back(e.type);
  return r;
}

/// The reader of `type`'s own keys. Throws Error for an unknown model_type, naming the known ones and the nearest.
inline Vlm read_own(const Reader& r, std::string_view type) {
  for (const auto& e : families)
    if (e.type == type) return e.read(r);
  for (const auto& e : causal_lms)
    if (e.type == type) return read_causal_lm(r, e);
  for (const auto& e : other_causal_lms)
    if (e.type == type) return e.read(r);
  for (const auto& [part, whole] : text_parts)
    if (part == type)
      r.fail("model_type", "transformers has no class that runs '" + std::string(type) + "' alone",
             "give the config of the whole model, " + std::string(whole) + ", with --images 0");
  const std::string known = known_words(type, known_types());
  if (type.empty()) r.fail("model_type", "missing", "a config.json names one: " + known);
  r.fail("model_type", "unknown type '" + std::string(type) + "'",
         known + "; other models can be written in the description format (docs/reference)");
}

/// The longest sequence that the language model was made for. Its config stands under one of these names, or is the
/// whole file; of a composite, the inner one counts.
inline std::optional<std::int64_t> read_positions(const Reader& r) {
  constexpr const char* key = "max_position_embeddings";
  for (const char* part : {"text_config", "llm_config", "language_config"})
    if (r.has(part))
      if (const Reader text = r.object(part); text.has(key)) return text.integer(key, 0, 1, std::int64_t{1} << 32);
  return r.has(key) ? std::optional(r.integer(key, 0, 1, std::int64_t{1} << 32)) : std::nullopt;
}

/// A model out of a parsed config.json, with the types that its weights have and are stored in.
inline Vlm read(const nlohmann::json& document, const std::string& path) {
  const Reader r(document, path);
  Vlm vlm = read_own(r, r.string("model_type", ""));
  vlm.text = read_text_class(r, r.string("model_type", ""));
  vlm.positions = read_positions(r);
  vlm.dtype = read_dtype(r);
  vlm.quantization = read_quantization(r);
  return vlm;
}

}  // namespace vlmest::json::hf
