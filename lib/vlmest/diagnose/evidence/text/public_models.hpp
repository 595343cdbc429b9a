// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// Models that are named without their size, or by that of a part.
namespace vlmest::diagnose::public_models {

/// A name in lower case as it stands in paths and in sentences, with '-' for any of '-', '_' and ' ', and thousands of
/// millions of parameters of the whole model, its encoders with it. Source: the model cards and reports of each, by the
/// sizes of their checkpoints.
struct NamedModel {
  std::string_view name;
  double billions;
};
/// A name that another one begins with stands behind it.
inline constexpr auto named = std::to_array<NamedModel>({
    {"internvl-chat-v1-5", 25.5},
    {"internvl-chat-v1-2", 40.1},
    {"internvl-chat-chinese-v1-2", 40.1},
    {"deepseek-vl2-tiny", 3.4},
    {"deepseek-vl2-small", 16.1},
    {"minicpm-llama3-v-2-5", 8.5},
    {"minicpm-v-2-6", 8.1},
    {"minicpm-o-2-6", 8.7},
    {"minicpm-v-4-5", 8.7},
    {"cogvlm2", 19.5},
    {"cogagent", 18.3},
    {"cogvlm", 17.6},
    {"emu2", 37},
    {"emu3", 8.5},
    {"qwen-vl-chat", 9.7},
    {"phi-3.5-vision", 4.1},
    {"phi-3-vision", 4.1},
    {"phi-3.5-moe", 41.9},
    {"phi-4-multimodal", 5.6},
    {"pixtral-large", 124},
    {"idefics2", 8.4},
    {"idefics3", 8.5},
    {"qwen2.5-omni-7b", 10.7},
    {"qwen2.5-omni-3b", 5.5},
    {"mixtral-8x22b", 141},
    {"mixtral-8x7b", 46.7},
    {"llama-4-scout", 109},
    {"llama-4-maverick", 402},
    {"glm-4.5v", 108},
    {"glm-4.6v-flash", 10.3},
    {"glm-4.6v", 108},
    {"glm-4v", 13.9},
    {"kimi-vl", 16.4},
});

/// A name's character against one of a text.
constexpr bool same(char name, char c) { return name == c || (name == '-' && (c == '_' || c == ' ')); }

/// Whether a name stands at a place of a text and ends there as a word.
constexpr bool stands_at(std::string_view low, std::size_t at, std::string_view name) {
  if (low.size() - at < name.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (!same(name[i], low[at + i])) return false;
  const auto end = at + name.size();
  return end == low.size() || (!is_digit(low[end]) && !is_letter(low[end]) && low[end] != '.');
}

/// Parameters of the largest that a line in lower case names; 0 where it names none.
inline double parameters_in(std::string_view low) {
  double most = 0;
  for (std::size_t at = 0; at < low.size(); ++at) {
    if (!is_letter(low[at]) || (at > 0 && (is_letter(low[at - 1]) || is_digit(low[at - 1])))) continue;
    const auto model =
        std::find_if(named.begin(), named.end(), [&](const NamedModel& m) { return stands_at(low, at, m.name); });
    if (model != named.end()) most = std::max(most, model->billions * 1e9);
  }
  return most;
}

}  // namespace vlmest::diagnose::public_models
