// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/json/hf/blip2.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/gemma4.hpp>
#include <vlmest/json/hf/mllama.hpp>
#include <vlmest/json/hf/qwen3_5.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/internlm2.hpp>
#include <vlmest/nn/vlm.hpp>

/// Language models alone: the config.json of a …ForCausalLM of transformers 5.17.
namespace vlmest::json::hf {

/// What a class adds to its decoder. A decoder that is run alone is one line. (AutoModelForCausalLM of 5.17 does not
/// lead from "mistral4" to Mistral4ForCausalLM, which is run by its name.)
struct CausalLmEntry {
  std::string_view type;       ///< also in `decoders`
  bool tied = false;           ///< what an absent tie_word_embeddings means (configuration_<type>.py)
  std::string_view step = {};  ///< the key that changes the logits; "": they stay as the head gives them
  bool step_by_default = false;
};
inline constexpr std::array causal_lms{
    CausalLmEntry{"cohere", true, "logit_scale", true},
    CausalLmEntry{"cohere2", true, "logit_scale", true},
    CausalLmEntry{"gemma", true},
    CausalLmEntry{"gemma2", true, "final_logit_softcapping", true},
    CausalLmEntry{"gemma3_text", true, "final_logit_softcapping", false},
    CausalLmEntry{"glm"},
    CausalLmEntry{"glm4"},
    CausalLmEntry{"gpt_oss"},
    CausalLmEntry{"granite", false, "logits_scaling", true},
    CausalLmEntry{"llama"},
    CausalLmEntry{"ministral3"},
    CausalLmEntry{"mistral"},
    CausalLmEntry{"mistral4"},
    CausalLmEntry{"phi3"},
    CausalLmEntry{"qwen2"},
    CausalLmEntry{"qwen2_moe"},
    CausalLmEntry{"qwen3"},
    CausalLmEntry{"qwen3_moe"},
};

inline Vlm text_only(std::string_view type, Family family) {
  Vlm m{.type = std::string(type)};
  m.family = std::move(family);
  m.tokens = tokens::TextOnly{};
  return m;
}

/// Any number changes the logits; null does not.
inline LogitStep read_logit_step(const Reader& r, const CausalLmEntry& e) {
  if (e.step.empty()) return LogitStep::as_is;
  const std::string key(e.step);
  r.number(key.c_str(), 1.0);
  if (r.is_null(key.c_str())) {
    if (key != "final_logit_softcapping") r.fail(key.c_str(), "null, but the model computes with it");
    return LogitStep::as_is;
  }
  if (!r.has(key.c_str()) && !e.step_by_default) return LogitStep::as_is;
  if (key == "logits_scaling") return LogitStep::divide;
  return key == "logit_scale" ? LogitStep::scale : LogitStep::softcap;
}

inline Vlm read_causal_lm(const Reader& r, const CausalLmEntry& e) {
  CausalLmFamily f;
  f.language = read_decoder(r, e.type);
  if (const auto* gemma = std::get_if<GemmaConfig>(&f.language); gemma && !gemma->causal)
    r.fail("use_bidirectional_attention", "a text encoder's masks are not modelled",
           "leave it out, or set it to false");
  f.tied = r.boolean("tie_word_embeddings", e.tied);
  f.logits = read_logit_step(r, e);
  return text_only(e.type, std::move(f));
}

/// model_type "opt": configuration_opt.py.
inline Vlm read_opt_lm(const Reader& r) {
  OptLmFamily f;
  f.language = read_opt(r);
  f.tied = r.boolean("tie_word_embeddings", true);
  return text_only("opt", std::move(f));
}

/// model_type "mllama_text_model": MllamaForCausalLM, with the cross-attention layers that it has and does not run. Its
/// embedding has rows that the head lacks: both cannot be one.
inline Vlm read_mllama_text_lm(const Reader& r) {
  MllamaTextFamily f;
  f.language = read_mllama_text(r);
  f.logits = LogitStep::widen;
  if (r.boolean("tie_word_embeddings", false))
    r.fail("tie_word_embeddings",
           "the embedding has " + std::to_string(MllamaText::extra_embeddings) + " rows more than the head",
           "set it to false");
  return text_only("mllama_text_model", std::move(f));
}

/// model_type "internlm2": InternLM2ForCausalLM.
inline Vlm read_internlm2_lm(const Reader& r) {
  InternLm2Family f;
  f.language = std::get<InternLm2Config>(read_internlm2(r));
  f.tied = r.boolean("tie_word_embeddings", false);
  return text_only("internlm2", std::move(f));
}

/// Language models whose decoder is called in a way of its own.
struct OtherCausalLmEntry {
  std::string_view type;
  Vlm (*read)(const Reader&);
};
inline constexpr std::array other_causal_lms{
    OtherCausalLmEntry{"opt", read_opt_lm},
    OtherCausalLmEntry{"internlm2", read_internlm2_lm},
    OtherCausalLmEntry{"mllama_text_model", read_mllama_text_lm},
    OtherCausalLmEntry{"qwen3_5_text", read_qwen3_5_lm},
    OtherCausalLmEntry{"qwen3_5_moe_text", read_qwen3_5_moe_lm},
    OtherCausalLmEntry{"gemma4_text", read_gemma4_lm},
    OtherCausalLmEntry{"gemma4_unified_text", read_gemma4_unified_lm},
};

/// Text parts that transformers has no …ForCausalLM for (models/auto/modeling_auto.py,
/// MODEL_FOR_CAUSAL_LM_MAPPING_NAMES), and the models that they are parts of.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 5> text_parts{
    {{"qwen2_vl_text", "qwen2_vl"},
     {"qwen2_5_vl_text", "qwen2_5_vl"},
     {"qwen3_vl_text", "qwen3_vl"},
     {"qwen3_vl_moe_text", "qwen3_vl_moe"},
     {"glm4v_text", "glm4v"}}};

}  // namespace vlmest::json::hf
