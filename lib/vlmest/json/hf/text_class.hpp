// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// The config class of a composite's language model: one that its own class fixes, or the one that a text_config
/// without a model_type means (transformers 5.17, configuration_<type>.py, `sub_configs` and __post_init__).
struct TextClassEntry {
  std::string_view type;
  std::string_view text;
  bool fixed = false;
};
inline constexpr std::array text_classes{
    TextClassEntry{"aria", "aria_text", true},
    TextClassEntry{"aya_vision", "cohere2"},
    TextClassEntry{"cohere2_vision", "cohere2"},
    TextClassEntry{"florence2", "bart"},
    TextClassEntry{"deepseek_ocr2", "deepseek_ocr2_text", true},
    TextClassEntry{"deepseek_vl", "llama"},
    TextClassEntry{"deepseek_vl_hybrid", "llama"},
    TextClassEntry{"diffusion_gemma", "diffusion_gemma_text", true},
    TextClassEntry{"cohere_compass", "cohere_compass_text", true},
    TextClassEntry{"cosmos3_omni", "qwen3_vl_text"},
    TextClassEntry{"ernie4_5_vl_moe", "ernie4_5_vl_moe_text", true},
    TextClassEntry{"exaone4_5", "exaone4"},
    TextClassEntry{"fast_vlm", "qwen2"},
    TextClassEntry{"gemma3", "gemma3_text", true},
    TextClassEntry{"gemma3n", "gemma3n_text", true},
    TextClassEntry{"gemma4", "gemma4_text", true},
    TextClassEntry{"gemma4_unified", "gemma4_unified_text", true},
    TextClassEntry{"glm46v", "glm4v_text"},
    TextClassEntry{"glm4v", "glm4v_text", true},
    TextClassEntry{"glm4v_moe", "glm4v_moe_text", true},
    TextClassEntry{"glm_ocr", "glm_ocr_text", true},
    TextClassEntry{"glmasr", "llama"},
    TextClassEntry{"got_ocr2", "qwen2"},
    TextClassEntry{"glmga", "glm4v_text"},
    TextClassEntry{"granite4_vision", "granite4_vision_text"},
    TextClassEntry{"hunyuan_vl", "hunyuan_vl_text", true},
    TextClassEntry{"idefics2", "mistral"},
    TextClassEntry{"idefics3", "llama"},
    TextClassEntry{"internvl", "qwen2"},
    TextClassEntry{"janus", "llama"},
    TextClassEntry{"kimi_k25", "deepseek_v3"},
    TextClassEntry{"kimi_vl", "deepseek_v3", true},
    TextClassEntry{"lfm2_vl", "lfm2"},
    TextClassEntry{"lighton_ocr", "qwen3"},
    TextClassEntry{"llama4", "llama4_text", true},
    TextClassEntry{"llava", "llama"},
    TextClassEntry{"llava_next", "llama"},
    TextClassEntry{"llava_next_video", "llama"},
    TextClassEntry{"llava_onevision", "qwen2"},
    TextClassEntry{"minicpmv4_6", "qwen3_5_text"},
    TextClassEntry{"mistral3", "mistral"},
    TextClassEntry{"mllama", "mllama_text_model", true},
    TextClassEntry{"molmo2", "molmo2_text", true},
    TextClassEntry{"moondream1", "moondream_text", true},
    TextClassEntry{"muse_glimmer", "muse_glimmer_text", true},
    TextClassEntry{"paddleocr_vl", "paddleocr_vl_text", true},
    TextClassEntry{"paligemma", "gemma"},
    TextClassEntry{"qianfan_ocr", "qwen3"},
    TextClassEntry{"qwen2_5_omni", "qwen2_5_omni_text", true},
    TextClassEntry{"qwen2_5_omni_thinker", "qwen2_5_omni_text", true},
    TextClassEntry{"qwen2_5_vl", "qwen2_5_vl_text", true},
    TextClassEntry{"qwen2_audio", "qwen2"},
    TextClassEntry{"qwen2_vl", "qwen2_vl_text", true},
    TextClassEntry{"qwen3_5", "qwen3_5_text", true},
    TextClassEntry{"qwen3_5_moe", "qwen3_5_moe_text", true},
    TextClassEntry{"qwen3_asr", "qwen3"},
    TextClassEntry{"qwen3_omni_moe", "qwen3_omni_moe_text", true},
    TextClassEntry{"qwen3_omni_moe_thinker", "qwen3_omni_moe_text", true},
    TextClassEntry{"qwen3_vl", "qwen3_vl_text", true},
    TextClassEntry{"qwen3_vl_moe", "qwen3_vl_moe_text", true},
    TextClassEntry{"shieldgemma2", "gemma3_text"},
    TextClassEntry{"smolvlm", "llama"},
    TextClassEntry{"step3p7", "step3p5", true},
    TextClassEntry{"video_llava", "llama"},
    TextClassEntry{"video_llama_3", "qwen2"},
    TextClassEntry{"vipllava", "llama"},
    TextClassEntry{"voxtral", "llama"},
};

/// Config classes of language models whose tie_word_embeddings is true where a file leaves it out.
inline constexpr std::array<std::string_view, 10> tying_classes{
    "cohere",      "cohere2",          "gemma",       "gemma2",
    "gemma3_text", "gemma3n_text",     "gemma4_text", "gemma4_unified_text",
    "lfm2",        "qwen2_5_omni_text"};

/// Of a parsed config.json whose model_type is `type`.
inline TextClass read_text_class(const Reader& r, std::string_view type) {
  TextClass c;
  const auto tied = [&](const Reader& t) {
    const bool by_default = std::find(tying_classes.begin(), tying_classes.end(), c.type) != tying_classes.end();
    return t.boolean("tie_word_embeddings", by_default);
  };
  for (const TextClassEntry& e : text_classes) {
    if (e.type != type) continue;
    c.type = std::string(e.text);
    if (!r.given("text_config")) return c;
    const Reader t = r.object("text_config");
    if (!e.fixed) c.type = t.string("model_type", c.type);
    if (c.type == "kimi_k2") c.type = e.text;  // what Kimi-K2.5's checkpoints call it (Kimi_K25Config)
    c.tied = tied(t);
    return c;
  }
  c.type = std::string(type);
  c.causal_lm = true;
  c.tied = tied(r);
  return c;
}

}  // namespace vlmest::json::hf
