// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/family/nemotron_h_vl/text.hpp>
#include <vlmest/json/hf/text.hpp>

/// Nemotron-H's text model: transformers 5.17, models/nemotron_h/configuration_nemotron_h.py.
namespace vlmest::json::hf {

/// hybrid_override_pattern, a letter for each layer, or layers_block_type, a word.
inline std::vector<NemotronHText::Layer> read_hybrid_layers(const Reader& t) {
  using Layer = NemotronHText::Layer;
  std::vector<Layer> layers;
  const auto moe = [&](const char* key) {
    t.fail(key, "layers of experts are not modelled", "known: Mamba-2, attention and MLP, as in Nemotron Nano V2");
  };
  if (t.given("layers_block_type")) {
    const char* key = "layers_block_type";
    const auto& list = t.value()[key];
    if (!list.is_array()) t.fail(key, "expected a list of words");
    for (const auto& e : list) {
      const std::string word = e.is_string() ? e.get<std::string>() : "";
      if (word == "moe") moe(key);
      if (word != "mamba" && word != "attention" && word != "mlp")
        t.fail(key, "unknown '" + word.substr(0, 64) + "'", "known: mamba, attention, mlp");
      layers.push_back(word == "mamba" ? Layer::mamba : word == "mlp" ? Layer::mlp : Layer::attention);
    }
    t.without_effect({"hybrid_override_pattern"});
  } else {
    const char* key = "hybrid_override_pattern";
    if (!t.given(key)) t.fail(key, "missing", "give a letter for each layer: M, * or -");
    for (const char letter : t.string(key, "")) {
      if (letter == 'E') moe(key);
      if (letter != 'M' && letter != '*' && letter != '-')
        t.fail(key, "unknown letter", "known: M (Mamba-2), * (attention), - (MLP)");
      layers.push_back(letter == 'M' ? Layer::mamba : letter == '-' ? Layer::mlp : Layer::attention);
    }
  }
  const auto n = static_cast<std::int64_t>(layers.size());
  if (n < 1 || n > 1024) t.fail("hybrid_override_pattern", "expected between 1 and 1024 layers");
  if (t.layers("num_hidden_layers", n) != n)
    t.fail("num_hidden_layers", "the pattern has " + std::to_string(n) + " layers", "make them agree");
  return layers;
}

/// The Mamba-2 layers' sizes.
inline Mamba2Config read_mamba2(const Reader& t, std::int64_t hidden) {
  Mamba2Config m{.hidden = hidden};
  m.heads = t.integer("mamba_num_heads", m.heads, 1, 1 << 16);
  m.head_dim = t.integer("mamba_head_dim", m.head_dim, 1, 1 << 16);
  m.groups = t.integer("n_groups", m.groups, 1, 1 << 16);
  m.state = t.integer("ssm_state_size", m.state, 1, 1 << 16);
  m.taps = t.integer("conv_kernel", m.taps, 2, 64);
  m.chunk = t.integer("chunk_size", m.chunk, 2, 1 << 16);
  m.conv_bias = t.boolean("use_conv_bias", m.conv_bias);
  m.bias = t.boolean("use_bias", m.bias);
  m.activation = parse_activation(t.string("mamba_hidden_act", "silu"));
  if (m.heads % m.groups != 0)
    t.fail("n_groups", "does not divide mamba_num_heads, whose heads share B and C by groups",
           "choose one that divides " + std::to_string(m.heads));
  t.without_effect({"expand", "mamba_proj_bias", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min",
                    "use_mamba_kernels", "rescale_prenorm_residual", "mamba_ssm_cache_dtype"});
  return m;
}

inline NemotronHText read_nemotron_h(const Reader& t) {
  if (const std::string type = t.string("model_type", "nemotron_h"); type != "nemotron_h")
    t.fail("model_type", "'" + type.substr(0, 64) + "' is not the language model of this type", "known: nemotron_h");
  NemotronHText d;
  d.vocab = t.integer("vocab_size", d.vocab);
  d.hidden = t.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = t.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  const Heads h = heads(t, d.hidden, d.heads, 8, t.integer("attention_head_dim", 128, 1, 1 << 16));
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  d.layers = read_hybrid_layers(t);
  d.mamba = read_mamba2(t, d.hidden);
  d.mlp_bias = t.boolean("mlp_bias", false);
  const std::string activation = t.string("mlp_hidden_act", "relu2");
  d.squares = activation == "relu2";
  if (!d.squares) d.activation = parse_activation(activation);
  for (const char* key : {"attention_dropout", "hidden_dropout"})
    if (read_dropout(t, key, 0.0)) t.fail(key, "dropout of this language model is not modelled", "set it to 0");
  for (const char* key : {"attention_bias", "residual_in_fp32"})
    if (t.boolean(key, false)) t.fail(key, "was compared with no run", "set it to false, as in Nemotron Nano V2");
  if (t.given("sliding_window"))
    t.fail("sliding_window", "windows of this language model are not modelled", "leave it out");
  t.without_effect(
      {"tie_word_embeddings", "num_logits_to_keep", "rms_norm_eps", "layer_norm_epsilon", "max_position_embeddings"});
  return d;
}

}  // namespace vlmest::json::hf
