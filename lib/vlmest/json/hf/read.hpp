// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vlmest/json/hf/aya_vision.hpp>
#include <vlmest/json/hf/blip2.hpp>
#include <vlmest/json/hf/gemma3.hpp>
#include <vlmest/json/hf/glm4v.hpp>
#include <vlmest/json/hf/idefics3.hpp>
#include <vlmest/json/hf/internvl.hpp>
#include <vlmest/json/hf/llava.hpp>
#include <vlmest/json/hf/llava_next.hpp>
#include <vlmest/json/hf/llava_onevision.hpp>
#include <vlmest/json/hf/mistral3.hpp>
#include <vlmest/json/hf/mllama.hpp>
#include <vlmest/json/hf/paligemma.hpp>
#include <vlmest/json/hf/quantization.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>

namespace vlmest::json::hf {

/// One model_type and the function that reads its config.json. A new family is one line.
struct Entry {
  std::string_view type;
  Vlm (*read)(const Reader&);
};
inline constexpr std::array families{
    Entry{"idefics3", read_idefics3},
    Entry{"smolvlm", read_smolvlm},
    Entry{"aya_vision", read_aya_vision},
    Entry{"llava", read_llava},
    Entry{"llava_next", read_llava_next},
    Entry{"llava_onevision", read_llava_onevision},
    Entry{"mistral3", read_mistral3},
    Entry{"qwen2_vl", read_qwen2_vl},
    Entry{"qwen2_5_vl", read_qwen2_5_vl},
    Entry{"qwen3_vl", read_qwen3_vl},
    Entry{"qwen3_vl_moe", read_qwen3_vl_moe},
    Entry{"glm4v", read_glm4v},
    Entry{"blip-2", read_blip2},
    Entry{"internvl", read_internvl},
    Entry{"mllama", read_mllama},
    Entry{"paligemma", read_paligemma},
    Entry{"gemma3", read_gemma3},
};

/// "llava, llava_next, …".
inline std::string known_types() {
  std::string s;
  for (const auto& e : families) s += (s.empty() ? "" : ", ") + std::string(e.type);
  return s;
}

/// A model out of a parsed config.json. Throws Error for an unknown model_type, naming the known ones.
inline Vlm read(const nlohmann::json& document, const std::string& path) {
  const Reader r(document, path);
  const std::string type = r.string("model_type", "");
  for (const auto& e : families)
    if (e.type == type) {
      Vlm vlm = e.read(r);
      vlm.dtype = read_dtype(r);
      vlm.quantization = read_quantization(r);
      return vlm;
    }
  if (type.empty()) r.fail("model_type", "missing", "a config.json names one of: " + known_types());
  r.fail("model_type", "unknown type '" + type + "'",
         "known: " + known_types() + "; other models can be written in the description format (docs/reference)");
}

}  // namespace vlmest::json::hf
