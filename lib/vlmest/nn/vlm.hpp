// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <vlmest/nn/block_config.hpp>
#include <vlmest/nn/family/aya_vision.hpp>
#include <vlmest/nn/family/blip2.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/gemma3.hpp>
#include <vlmest/nn/family/glm4v.hpp>
#include <vlmest/nn/family/idefics3.hpp>
#include <vlmest/nn/family/internvl.hpp>
#include <vlmest/nn/family/llava.hpp>
#include <vlmest/nn/family/llava_next.hpp>
#include <vlmest/nn/family/llava_onevision.hpp>
#include <vlmest/nn/family/mistral3.hpp>
#include <vlmest/nn/family/mllama.hpp>
#include <vlmest/nn/family/paligemma.hpp>
#include <vlmest/nn/family/qwen3_vl.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/family/vipllava.hpp>
#include <vlmest/nn/tokens/tokens.hpp>

namespace vlmest {

/// Every assembly. A new family is a header with a config and what differs from the common one (family/assembly.hpp):
/// make_model, make_inputs, image_features, prefill or decode; and one word here.
using Family = std::variant<LlavaFamily, LlavaNextFamily, LlavaOnevisionFamily, Qwen2VlFamily, Qwen2_5VlFamily,
                            Qwen3VlFamily, InternVlFamily, MllamaFamily, PaliGemmaFamily, Gemma3Family, Mistral3Family,
                            Idefics3Family, AyaVisionFamily, Glm4vFamily, Blip2Family, VipLlavaFamily, CausalLmFamily,
                            OptLmFamily, MllamaTextFamily>;

/// A vision-language model, or a language model alone: what it is called, how it is put together, how it turns pixels
/// into tokens.
struct Vlm {
  std::string name;
  std::string type;  ///< the model_type of its config.json
  Family family;
  TokenRule tokens;
  ImageSize native;                          ///< the image size that is meant where none is given
  std::vector<BlockConfig> blocks;           ///< what a description adds (nn/block.hpp)
  std::optional<KvLayout> kv;                ///< how a description keeps keys and values
  std::optional<DType> dtype;                ///< of its config.json: the default type of weights and activations
  std::optional<Quantization> quantization;  ///< of its config.json: how it stores its weights
};

/// Whether a model has a vision tower; a plain language model takes no images.
inline bool takes_images(const Vlm& v) {
  return std::visit(
      [](const auto& f) {
        return requires { f.vision; };
      },
      v.family);
}

/// The storage that a run keeps: the checkpoint's, unless the plan names another, or transformers makes wide weights of
/// it on that GPU. Throws Error where it is not known.
inline const Quantization* quantization_of(const Vlm& vlm, const Plan& plan) {
  if (!vlm.quantization || plan.weights) return nullptr;
  if (vlm.quantization->refused) throw *vlm.quantization->refused;
  const bool transformers = plan.profile == Profile::transformers;
  if (transformers && plan.compute_capability < vlm.quantization->dequantised_below) return nullptr;
  return &*vlm.quantization;
}

}  // namespace vlmest
