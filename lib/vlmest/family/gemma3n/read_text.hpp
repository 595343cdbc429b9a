// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/family/gemma3n/text_config.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>

/// Gemma 3n's language model out of a Hugging Face config: transformers 5.17,
/// models/gemma3n/configuration_gemma3n.py, Gemma3nTextConfig.
namespace vlmest::json::hf {

/// convert_rope_params_to_dict: rope_parameters by type of layer; rope_scaling, as older files have it, is the full
/// layers'. The types that are known have frequencies that do not depend on the input; their numbers change no byte.
inline void check_gemma3n_rope(const Reader& r) {
  const auto check = [](const Reader& rope) {
    const std::string type = rope.string("rope_type", rope.string("type", "default"));
    if (type != "default" && type != "linear" && type != "llama3" && type != "yarn")
      rope.fail("rope_type", "'" + type.substr(0, 64) + "' is not modelled here",
                "known: default, linear, llama3, yarn");
  };
  check(r.object("rope_scaling"));
  const Reader all = r.object("rope_parameters");
  for (const char* type : {"full_attention", "sliding_attention"}) check(all.object(type));
}

/// intermediate_size: one for all layers, or one for each.
inline std::vector<std::int64_t> read_inner_sizes(const Reader& r, std::int64_t layers) {
  constexpr std::int64_t most = 1 << 24;
  std::vector<std::int64_t> sizes = r.integers("intermediate_size", {16384});
  for (const std::int64_t n : sizes)
    if (n < 1 || n > most) r.fail("intermediate_size", "must lie between 1 and " + std::to_string(most));
  const bool list = r.given("intermediate_size") && r.value()["intermediate_size"].is_array();
  if (!list) sizes.assign(static_cast<std::size_t>(layers), sizes.front());
  if (static_cast<std::int64_t>(sizes.size()) != layers)
    r.fail("intermediate_size", "expected one number, or one for each of the " + std::to_string(layers) + " layers");
  return sizes;
}

/// activation_sparsity_pattern: which layers are sparse. Absent: the first ten of more than ten.
inline std::vector<bool> read_sparse_layers(const Reader& r, std::int64_t layers) {
  constexpr const char* key = "activation_sparsity_pattern";
  std::vector<bool> sparse;
  if (!r.given(key)) {
    for (std::int64_t i = 0; i < layers; ++i) sparse.push_back(layers > 10 && i < 10);
    return sparse;
  }
  const auto& list = r.value()[key];
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) != layers)
    r.fail(key, "expected one number for each of the " + std::to_string(layers) + " layers");
  for (const auto& share : list) {
    if (!share.is_number()) r.fail(key, "expected a list of numbers");
    if (const double s = share.get<double>(); !(s >= 0.0 && s < 1.0))
      r.fail(key, "a share of activations that are left out lies between 0 and 1");
    sparse.push_back(share.get<double>() > 0.0);
  }
  return sparse;
}

/// Layers that share keys take those of the last layer of their type before them.
inline void read_shared_layers(const Reader& r, Gemma3nTextConfig& d) {
  d.shared = r.integer("num_kv_shared_layers", d.shared, 0, 1024);
  if (d.shared >= d.layers)
    r.fail("num_kv_shared_layers", std::to_string(d.shared) + ", but at least one of the " + std::to_string(d.layers) +
                                       " layers needs keys of its own");
  for (std::int64_t i = d.first_shared(); i < d.layers; ++i) {
    std::int64_t from = 0;
    while (from < d.first_shared() && d.slides(from) != d.slides(i)) ++from;
    if (from == d.first_shared())
      r.fail("num_kv_shared_layers",
             "layer " + std::to_string(i) + " shares keys with an earlier layer of its type, but there is none");
  }
}

/// The copies of the hidden states; altup_active_idx may count from the end, as Python's indices do.
inline void read_copies(const Reader& r, Gemma3nTextConfig& d) {
  d.copies = r.integer("altup_num_inputs", d.copies, 1, 64);
  d.active = r.integer("altup_active_idx", d.active, -64, 63);
  if (d.active < -d.copies || d.active >= d.copies)
    r.fail("altup_active_idx", std::to_string(d.active) + ", but altup_num_inputs is " + std::to_string(d.copies));
  if (d.active < 0) d.active += d.copies;
  d.scales_output = r.boolean("altup_correct_scale", true);
}

inline Gemma3nTextConfig read_gemma3n_text(const Reader& r) {
  check_part(r, "gemma3n_text");
  refuse_null(r, {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                  "num_key_value_heads", "head_dim", "sliding_window", "final_logit_softcapping",
                  "vocab_size_per_layer_input", "hidden_size_per_layer_input", "altup_active_idx", "altup_coef_clip",
                  "altup_num_inputs", "num_kv_shared_layers", "laurel_rank"});
  Gemma3nTextConfig d;
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.layers = r.layers("num_hidden_layers", d.layers);
  const Heads h = heads(r, d.hidden, d.heads, d.kv_heads, d.head_dim);
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  divides(r, "num_attention_heads", d.hidden, d.heads);  // whatever head_dim says (validate_architecture)
  d.activation = parse_activation(r.string("hidden_activation", "gelu_pytorch_tanh"));
  d.attention_bias = r.boolean("attention_bias", false);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.inner = read_inner_sizes(r, d.layers);
  d.sparse = read_sparse_layers(r, d.layers);
  check_layer_types(r);
  d.sliding = sliding_layers(r, d.layers, std::int64_t{5});
  d.window = r.integer("sliding_window", d.window, 1, std::int64_t{1} << 32);
  read_shared_layers(r, d);
  d.per_layer = r.integer("hidden_size_per_layer_input", d.per_layer, 1, 1 << 20);
  d.per_layer_vocab = r.integer("vocab_size_per_layer_input", d.per_layer_vocab);
  read_copies(r, d);
  r.number("altup_coef_clip", 120.0);
  r.number("final_logit_softcapping", 30.0);
  d.laurel_rank = r.integer("laurel_rank", d.laurel_rank, 1, 1 << 20);
  check_gemma3n_rope(r);
  return d;
}

}  // namespace vlmest::json::hf
