// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/nn/kv_layout.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// Actions on how a prompt is answered. Names of arguments: transformers 5.17 (generation/configuration_utils.py,
/// cache_utils.py, utils/quantization_config.py), vLLM (engine/arg_utils.py).
namespace vlmest::diagnose {

namespace action {

inline KvLayout kv(const Subject& s) { return chosen_layout(s.now.vlm.kv, s.plan().kv); }
inline DType kv_type(const Subject& s) { return kv(s).dtype.value_or(s.plan().dtype); }
inline std::vector<Settings> kv_in(const Subject& s, DType t) {
  const bool narrower = size_of(Elements(8), t) < size_of(Elements(8), kv_type(s));
  return changed(s, !s.training() && narrower, [t](Settings& n) { n.plan.kv.dtype = t; });
}
inline std::vector<Settings> weights_in(const Subject& s, DType t) {
  if (s.now.vlm.quantization && !s.plan().weights) return {};  // the checkpoint stores them in fewer bits already
  const DType now = s.plan().weights.value_or(s.plan().dtype);
  return changed(s, !s.training() && size_of(Elements(8), t) < size_of(Elements(8), now),
                 [t](Settings& n) { n.plan.weights = t; });
}
/// Windows of 15 / 16 to 1 / 16 of what a sequence holds in the end.
std::vector<Settings> windows(const Subject& s);

}  // namespace action

inline constexpr std::array inference_actions{
    ActionEntry{"logits-last", "logits of the last position alone", Loses::nothing,
                [](const Subject& s) {
                  return changed(s, !s.training() && s.plan().logits == Logits::all,
                                 [](Settings& n) { n.plan.logits = Logits::last; });
                },
                [](const Subject&, const Settings&) { return std::string("model(**inputs, logits_to_keep=1)"); }}
        .in_general({.training = false, .torch = "model.generate(...), or model(..., logits_to_keep=1)"}),
    ActionEntry{"kv-fp8", "keys and values in 8-bit floating point", Loses::quality,
                [](const Subject& s) { return action::kv_in(s, DType::fp8); },
                [](const Subject&, const Settings&) { return std::string("vllm serve MODEL --kv-cache-dtype fp8"); }}
        .in_general({.training = false,
                     .engine = "--kv-cache-dtype fp8; SGLang: fp8_e5m2",
                     .other = "a quantised cache (llama.cpp -ctk q8_0 -ctv q8_0; ollama OLLAMA_KV_CACHE_TYPE=q8_0, "
                              "with its flash attention)"}),
    ActionEntry{
        "kv-int8", "keys and values in 8-bit integers", Loses::quality,
        [](const Subject& s) { return action::kv_in(s, DType::int8); },
        [](const Subject&, const Settings&) {
          return std::string(
              "model.generate(**inputs, cache_implementation=\"quantized\", cache_config={\"backend\": \"hqq\", "
              "\"nbits\": 8})");
        }},
    ActionEntry{"kv-sliding", "keys and values of the newest tokens alone", Loses::quality, action::windows,
                [](const Subject&, const Settings& after) {
                  return "c = copy.deepcopy(model.config.get_text_config()); c.sliding_window = " +
                         std::to_string(after.plan.kv.window) +
                         "; c.layer_types = [\"sliding_attention\"] * c.num_hidden_layers; model.generate(**inputs, "
                         "past_key_values=DynamicCache(config=c))";
                }},
    ActionEntry{"kv-paged", "keys and values in pages, which are not copied when a sequence grows", Loses::nothing,
                [](const Subject& s) {
                  return changed(s, !s.training() && action::kv(s).kind == KvLayout::Kind::dense,
                                 [](Settings& n) { n.plan.kv.kind = KvLayout::Kind::paged; });
                },
                [](const Subject&, const Settings& after) {
                  return "vllm serve MODEL --block-size " + std::to_string(after.plan.kv.block);
                }},
    ActionEntry{"weights-int8", "the language model's weights in 8 bits", Loses::quality,
                [](const Subject& s) { return action::weights_in(s, DType::int8); },
                [](const Subject& s, const Settings&) {
                  return "from_pretrained(MODEL, quantization_config=BitsAndBytesConfig(load_in_8bit=True, " +
                         skipped_modules(s) + "))";
                }}
        .in_general({.training = false,
                     .torch = "BitsAndBytesConfig(load_in_8bit=True)",
                     .engine = "a checkpoint in 8 bits",
                     .other = "a model file in 8 bits",
                     .in_force = [](const Plan& p, const Gpu&) { return p.weights && bits(*p.weights) <= 8; }}),
    ActionEntry{"weights-nf4", "the language model's weights in 4 bits", Loses::quality,
                [](const Subject& s) { return action::weights_in(s, DType::nf4); },
                [](const Subject& s, const Settings&) {
                  return "from_pretrained(MODEL, quantization_config=BitsAndBytesConfig(load_in_4bit=True, "
                         "bnb_4bit_quant_type=\"nf4\", bnb_4bit_compute_dtype=torch.bfloat16, " +
                         skipped_modules(s) + "))";
                }}
        .in_general({.training = false,
                     .torch = "BitsAndBytesConfig(load_in_4bit=True)",
                     .engine = "a checkpoint in AWQ or GPTQ",
                     .other = "a model file in 4 bits",
                     .in_force = [](const Plan& p, const Gpu&) { return p.weights && bits(*p.weights) <= 4; }}),
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/actions_inference.hpp>
#endif
