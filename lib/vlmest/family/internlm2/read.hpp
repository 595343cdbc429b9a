// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/internlm2/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/internlm2.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "internlm2": InternLM2ForCausalLM.
inline Vlm read_internlm2_lm(const Reader& r) {
  InternLm2Family f;
  f.language = std::get<InternLm2Config>(read_internlm2(r));
  f.tied = r.boolean("tie_word_embeddings", false);
  return text_only("internlm2", std::move(f));
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct InternLm2 {
  static constexpr std::string_view folder = "internlm2";
  static constexpr std::array types{
      json::ModelType{.type = "internlm2", .read = json::hf::read_internlm2_lm, .recorder = json::not_recorded}};
  using Rules = json::Rules<>;
};

}  // namespace vlmest::family
