// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vlmest/json/hf/aria_text.hpp>
#include <vlmest/json/hf/cohere.hpp>
#include <vlmest/json/hf/deepseek.hpp>
#include <vlmest/json/hf/exaone4.hpp>
#include <vlmest/json/hf/gemma_text.hpp>
#include <vlmest/json/hf/glm_text.hpp>
#include <vlmest/json/hf/gpt_oss.hpp>
#include <vlmest/json/hf/internlm2.hpp>
#include <vlmest/json/hf/lfm2.hpp>
#include <vlmest/json/hf/llama4.hpp>
#include <vlmest/json/hf/qwen_moe.hpp>
#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// One language model's model_type and its reader. A new one is one line.
struct DecoderEntry {
  std::string_view type;
  DecoderConfig (*read)(const Reader&);
};
inline constexpr std::array decoders{
    DecoderEntry{"aria_text", read_aria_text},
    DecoderEntry{"gemma", read_gemma},
    DecoderEntry{"gemma2", read_gemma2},
    DecoderEntry{"gemma3_text", read_gemma3_text},
    DecoderEntry{"cohere", read_cohere},
    DecoderEntry{"cohere2", read_cohere2},
    DecoderEntry{"deepseek_v3", read_deepseek_v3},
    DecoderEntry{"exaone4", read_exaone4},
    DecoderEntry{"glm", read_glm},
    DecoderEntry{"glm4", read_glm4},
    DecoderEntry{"gpt_oss", read_gpt_oss},
    DecoderEntry{"granite", read_granite},
    DecoderEntry{"internlm2", read_internlm2},
    DecoderEntry{"lfm2", read_lfm2},
    DecoderEntry{"llama", read_llama},
    DecoderEntry{"llama4_text", read_llama4_text},
    DecoderEntry{"ministral3", read_ministral3},
    DecoderEntry{"mistral", read_mistral},
    DecoderEntry{"mistral4", read_mistral4},
    DecoderEntry{"phi3", read_phi3},
    DecoderEntry{"qwen2", read_qwen2},
    DecoderEntry{"qwen2_moe", read_qwen2_moe},
    DecoderEntry{"qwen3", read_qwen3},
    DecoderEntry{"qwen3_moe", read_qwen3_moe},
};

/// The text_config `r` of model_type `type`; throws Error naming the known ones.
inline DecoderConfig read_decoder(const Reader& r, std::string_view type) {
  std::string known;
  for (const auto& e : decoders) {
    if (e.type == type) return e.read(r);
    known += (known.empty() ? "" : ", ") + std::string(e.type);
  }
  r.fail("model_type", "unknown language model '" + std::string(type) + "'", "known: " + known);
}

}  // namespace vlmest::json::hf
