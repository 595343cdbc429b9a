// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/json/asked_keys.hpp>

/// Which keys of a config.json nothing here knows. They may change what the model's class does, and an estimate that
/// silently left them out would look like any other: fine-tuned checkpoints and newer libraries bring such keys.
namespace vlmest::json::hf {

/// A key that changes neither bytes nor work, whatever the family; where one does, that family's reader asks for it.
struct HarmlessKey {
  std::string_view name;
  std::string_view only = {};  ///< as JSON, the one value with which it is harmless; empty: any
};

/// transformers 5.17: configuration_utils.py (PreTrainedConfig, and what older versions of it wrote into files),
/// generation/configuration_utils.py, and the config classes of models/.
inline constexpr auto harmless_keys = std::to_array<HarmlessKey>({
    // what a file tells of itself
    {"_commit_hash"},
    {"_name_or_path"},
    {"architectures"},
    {"auto_map"},
    {"is_composition"},
    {"model_max_length"},
    {"model_name"},
    {"model_type"},
    {"name_or_path"},
    {"processor_class"},
    {"tokenizer_class"},
    {"transformers.js_config"},
    {"transformers_version"},
    {"unsloth_fixed"},
    {"unsloth_version"},
    {"use_bfloat16"},
    // types of parts, which are loaded in the whole model's
    {"dtype"},
    {"torch_dtype"},
    // first values, and factors of products that are there in any case
    {"attention_multiplier"},
    {"embedding_multiplier"},
    {"init_std"},
    {"initializer_factor"},
    {"initializer_range"},
    {"layer_scale_init_value"},
    {"logit_scale"},
    {"logits_scaling"},
    {"query_pre_attn_scalar"},
    {"residual_multiplier"},
    {"rope_local_base_freq"},
    {"rope_theta"},
    {"routed_scaling_factor"},
    // lengths that the inputs have anyway, and layers that the classes leave unread
    {"image_seq_length"},
    {"max_position_embeddings"},
    {"mtp_num_hidden_layers"},
    {"mtp_use_dedicated_embeddings"},
    {"num_image_tokens"},
    {"original_max_position_embeddings"},
    {"video_seq_length"},
    // losses of training
    {"aux_loss_alpha"},
    {"seq_aux"},
    {"ignore_index"},
    {"output_router_logits", "false"},
    {"router_aux_loss_coef"},
    // what comes beside the output, and heads for other tasks
    {"finetuning_task"},
    {"id2label"},
    {"label2id"},
    {"num_labels"},
    {"output_attentions", "false"},
    {"output_hidden_states", "false"},
    {"problem_type"},
    {"return_dict"},
    {"task_specific_params"},
    {"tf_legacy_loss"},
    {"use_cache"},
    {"use_image_newline_parameter"},
    // parts and ways that these values mean the absence of
    {"add_cross_attention", "false"},
    {"chunk_size_feed_forward", "0"},
    {"gradient_checkpointing", "false"},
    {"is_decoder"},
    {"is_encoder_decoder", "false"},
    {"mamba_ssm_dtype", "\"float32\""},
    {"n_group", "1"},
    {"neftune_noise_alpha", "0"},
    {"pretraining_tp", "1"},
    {"pruned_heads", "{}"},
    {"rotary_pct", "1"},
    {"tie_encoder_decoder", "false"},
    {"topk_group", "1"},
    {"torchscript", "false"},
    {"use_mrope", "false"},
    // how attention was chosen by older versions
    {"_attn_implementation_autoset"},
    {"_flash_attn_2_enabled"},
    // generation
    {"bad_words_ids"},
    {"begin_suppress_tokens"},
    {"cache_implementation"},
    {"diversity_penalty"},
    {"do_sample"},
    {"early_stopping"},
    {"encoder_no_repeat_ngram_size"},
    {"exponential_decay_length_penalty"},
    {"length_penalty"},
    {"max_length"},
    {"min_length"},
    {"no_repeat_ngram_size"},
    {"num_beam_groups", "1"},
    {"num_beams", "1"},
    {"num_return_sequences", "1"},
    {"output_scores", "false"},
    {"prefix"},
    {"remove_invalid_values"},
    {"repetition_penalty"},
    {"return_dict_in_generate"},
    {"suppress_tokens"},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    {"typical_p"},
});

/// Within rope_scaling and rope_parameters (modeling_rope_utils.py): half a head of frequencies, whatever their values;
/// how the axes of a picture share them is the classes' own.
inline constexpr auto harmless_rope_keys = std::to_array<HarmlessKey>({
    {"alpha"},
    {"attention_factor"},
    {"beta_fast"},
    {"beta_slow"},
    {"factor"},
    {"high_freq_factor"},
    {"long_factor"},
    {"long_mscale"},
    {"low_freq_factor"},
    {"mrope_interleaved"},
    {"mscale"},
    {"mscale_all_dim"},
    {"original_max_position_embeddings"},
    {"partial_rotary_factor", "1"},
    {"rope_theta"},
    {"rope_type"},
    {"short_factor"},
    {"short_mscale"},
    {"truncate"},
    {"type"},
});

inline bool is_any_of(std::span<const HarmlessKey> keys, std::string_view name, const nlohmann::json& value) {
  return std::ranges::any_of(keys, [&](const HarmlessKey& k) {
    return k.name == name && (k.only.empty() || nlohmann::json::parse(k.only) == value);
  });
}

inline bool is_harmless(std::string_view name, const nlohmann::json& value) {
  if (value.is_null()) return true;
  // numbers of tokens, and what keeps a division from zero
  for (const std::string_view end : {"_eps", "_epsilon", "_token", "_token_id", "_token_ids", "_token_index"})
    if (name.ends_with(end)) return true;
  if (name.find("drop") != std::string_view::npos && value == 0) return true;
  return is_any_of(harmless_keys, name, value);
}

/// A name as messages and JSON can show it: what ASCII does not print becomes a question mark.
inline std::string printable(std::string_view key) {
  std::string s(key.substr(0, 64));
  std::ranges::replace_if(
      s, [](char c) { return c < ' ' || c > '~'; }, '?');
  return s;
}

/// Adds those of an object, and of the objects in it that a reader entered. `shown` is what stands before a key's name.
inline void add_unread_keys(std::vector<std::string>& to, const nlohmann::json& object, const AskedKeys& asked,
                            const std::string& path, const std::string& shown) {
  const AskedKeys::Keys* keys = asked.find(path);
  const bool rope = path.ends_with(".rope_scaling") || path.find(".rope_parameters") != std::string::npos;
  for (const auto& [key, value] : object.items()) {
    const bool known = keys != nullptr && keys->contains(key);
    const std::string at = path + "." + key;
    // Its own readers tell what of it has no effect (nn/quantization/unused_rules.hpp), or refuse it.
    if (key == "quantization_config" || key == "compression_config") continue;
    if (value.is_object() && (asked.find(at) != nullptr || key == "rope_scaling" || key == "rope_parameters"))
      add_unread_keys(to, value, asked, at, shown + key + ".");
    else if (!known && !is_harmless(key, value) && !(rope && is_any_of(harmless_rope_keys, key, value)))
      to.push_back(shown + printable(key));
  }
}

/// Of a document whose readers wrote down what they asked for, as "text_config.heads".
inline std::vector<std::string> unread_keys(const nlohmann::json& document, const AskedKeys& asked,
                                            const std::string& path) {
  std::vector<std::string> keys;
  add_unread_keys(keys, document, asked, path, "");
  return keys;
}

}  // namespace vlmest::json::hf
