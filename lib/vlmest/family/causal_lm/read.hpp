// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/opt.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
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
    CausalLmEntry{"aria_text"},
    CausalLmEntry{"cohere", true, "logit_scale", true},
    CausalLmEntry{"cohere2", true, "logit_scale", true},
    CausalLmEntry{"deepseek_v3"},
    CausalLmEntry{"exaone4"},
    CausalLmEntry{"gemma", true},
    CausalLmEntry{"gemma2", true, "final_logit_softcapping", true},
    CausalLmEntry{"gemma3_text", true, "final_logit_softcapping", false},
    CausalLmEntry{"glm"},
    CausalLmEntry{"glm4"},
    CausalLmEntry{"gpt_oss"},
    CausalLmEntry{"granite", false, "logits_scaling", true},
    CausalLmEntry{"lfm2", true},
    CausalLmEntry{"llama"},
    CausalLmEntry{"llama4_text"},
    CausalLmEntry{"ministral3"},
    CausalLmEntry{"mistral"},
    CausalLmEntry{"mistral4"},
    CausalLmEntry{"phi3"},
    CausalLmEntry{"qwen2"},
    CausalLmEntry{"qwen2_moe"},
    CausalLmEntry{"qwen3"},
    CausalLmEntry{"qwen3_moe"},
};

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

template <std::size_t I>
Vlm read_causal_lm(const Reader& r) {
  const CausalLmEntry& e = causal_lms[I];
  CausalLmFamily f;
  f.language = read_decoder(r, e.type);
  if (const auto* gemma = std::get_if<GemmaConfig>(&f.language); gemma && !gemma->causal)
    r.fail("use_bidirectional_attention", "a text encoder's masks are not modelled",
           "leave it out, or set it to false");
  f.tied = r.boolean("tie_word_embeddings", e.tied);
  if (e.type == "lfm2") f.tied = r.boolean("tie_embedding", f.tied);  // an older name, which comes first
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

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct CausalLm {
  static constexpr std::string_view folder = "causal_lm";
  static constexpr auto types = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{json::ModelType{json::hf::causal_lms[I].type, json::hf::read_causal_lm<I>, json::not_recorded}...,
                      json::ModelType{"opt", json::hf::read_opt_lm, json::not_recorded}};
  }
  (std::make_index_sequence<json::hf::causal_lms.size()>{});
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
