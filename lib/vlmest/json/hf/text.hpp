// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/decoder/decoder.hpp>

/// Language models out of a Hugging Face config: keys and the defaults of each model_type's own config class
/// (transformers 5.17, models/<type>/configuration_<type>.py).
namespace vlmest::json::hf {

/// heads, kv_heads and head_dim, and that they divide.
struct Heads {
  std::int64_t heads, kv_heads, head_dim;
};
inline Heads heads(const Reader& r, std::int64_t hidden, std::int64_t count, std::optional<std::int64_t> kv,
                   std::optional<std::int64_t> dim) {
  Heads h{};
  h.heads = r.integer("num_attention_heads", count, 1, 1 << 16);
  // Absent: the class's default; null: as many as query heads.
  h.kv_heads =
      r.has("num_key_value_heads") ? r.integer("num_key_value_heads", h.heads, 1, 1 << 16) : kv.value_or(h.heads);
  if (h.heads % h.kv_heads != 0)
    r.fail("num_key_value_heads",
           std::to_string(h.heads) + " query heads cannot share " + std::to_string(h.kv_heads) + " key-value heads",
           "num_attention_heads must be a multiple of num_key_value_heads");
  const bool given = r.given("head_dim") || (!r.has("head_dim") && dim);
  if (!given && hidden % h.heads != 0)
    r.fail("num_attention_heads",
           "hidden_size " + std::to_string(hidden) + " is not divisible by " + std::to_string(h.heads) + " heads",
           "give head_dim, or a hidden_size that is a multiple of the heads");
  h.head_dim = r.has("head_dim") ? r.integer("head_dim", hidden / h.heads, 1, 1 << 16) : dim.value_or(hidden / h.heads);
  if (h.head_dim % 2 != 0) r.fail("head_dim", "rotary embeddings need an even head size");
  return h;
}

/// For attention whose output is as wide as its input, whatever head_dim says.
inline void check_heads_fill(const Reader& r, std::int64_t hidden, std::int64_t heads, std::int64_t head_dim) {
  if (hidden != checked_mul(heads, head_dim))
    r.fail("head_dim",
           "the heads must fill hidden_size: " + std::to_string(heads) + " of " + std::to_string(hidden / heads),
           "leave head_dim out");
}

/// Sizes, heads and activation, which all language models name alike; `d` holds the class's defaults, `kv` and `dim`
/// what an absent num_key_value_heads and head_dim mean (none: one for each query head; hidden_size / heads).
template <class Config>
Config text_model(const Reader& r, Config d, std::optional<std::int64_t> kv, std::optional<std::int64_t> dim,
                  const char* activation_key = "hidden_act", std::string_view activation = "silu") {
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  const Heads h = heads(r, d.hidden, d.heads, kv, dim);
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  d.activation = parse_activation(r.string(activation_key, activation));
  return d;
}

/// Which layers slide: those of "sliding_attention" in layer_types; where it is absent, those with slides(index).
template <class Slides>
std::vector<bool> sliding_layers(const Reader& r, std::int64_t layers, Slides slides) {
  std::vector<bool> s;
  if (!r.given("layer_types")) {
    for (std::int64_t i = 0; i < layers; ++i) s.push_back(slides(i));
    return s;
  }
  const auto& list = r.value()["layer_types"];
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) != layers)
    r.fail("layer_types", "expected one entry for each of the " + std::to_string(layers) + " layers");
  for (const auto& e : list) s.push_back(e.is_string() && e.get<std::string>() == "sliding_attention");
  return s;
}
/// Every layer slides but each `pattern`-th.
inline std::vector<bool> sliding_layers(const Reader& r, std::int64_t layers, std::int64_t pattern) {
  return sliding_layers(r, layers, [&](std::int64_t i) { return (i + 1) % pattern != 0; });
}

/// Throws Error where layer_types has other words than those of full and of sliding layers.
inline void check_layer_types(const Reader& r) {
  if (!r.given("layer_types")) return;
  for (const auto& e : r.value()["layer_types"])
    if (!e.is_string() || (e != "sliding_attention" && e != "full_attention"))
      r.fail("layer_types", "expected \"sliding_attention\" or \"full_attention\"");
}

/// What the class declares as a number, not as a number or nothing.
inline void refuse_null(const Reader& r, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (r.is_null(key)) r.fail(key, "null, but the class takes a number", "leave it out for its default");
}

/// A probability of dropping; true above zero.
inline bool read_dropout(const Reader& r, const char* key, double absent) {
  const double p = r.number(key, absent);
  if (!(p >= 0.0 && p <= 1.0)) r.fail(key, "must lie between 0 and 1");
  return p > 0.0;
}

/// models/llama/configuration_llama.py.
inline DecoderConfig read_llama(const Reader& r) {
  LlamaConfig d = text_model(r, LlamaConfig{}, std::nullopt, std::nullopt);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.qkv_bias = d.o_bias = r.boolean("attention_bias", false);
  d.mlp_bias = r.boolean("mlp_bias", false);
  return d;
}

/// models/mistral/configuration_mistral.py: an absent sliding_window is 4096, null is none.
inline DecoderConfig read_mistral(const Reader& r) {
  LlamaConfig d = text_model(r, LlamaConfig{.intermediate = 14336}, 8, std::nullopt);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.window = r.has("sliding_window") ? r.optional_integer("sliding_window") : std::optional<std::int64_t>(4096);
  if (d.window) d.sliding.assign(static_cast<std::size_t>(d.layers), true);
  return d;
}

/// A list with `plain` or `marked` for each layer: which are marked.
inline std::vector<bool> marked_layers(const Reader& r, const char* key, std::int64_t layers, std::string_view plain,
                                       std::string_view marked) {
  const auto& list = r.value()[key];
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) != layers)
    r.fail(key, "expected one entry for each of the " + std::to_string(layers) + " layers");
  std::vector<bool> found;
  for (const auto& e : list) {
    if (e != plain && e != marked)
      r.fail(key, "expected \"" + std::string(plain) + "\" or \"" + std::string(marked) + "\"");
    found.push_back(e == marked);
  }
  return found;
}

/// rope_scaling, as older files call it, or where that says nothing rope_parameters (transformers 5.17
/// modeling_rope_utils.py, convert_rope_params_to_dict).
inline Reader rope_parameters(const Reader& r) {
  const bool old = r.given("rope_scaling") && !r.object("rope_scaling").value().empty();
  return r.object(old ? "rope_scaling" : "rope_parameters");
}

/// Of models whose heads turn as a whole. Frequencies that depend on the length are not modelled; the other types
/// change their values alone.
inline void check_static_rope(const Reader& r) {
  const Reader rope = rope_parameters(r);
  const std::string type = rope.string("rope_type", rope.string("type", "default"));
  if (type != "default" && type != "linear" && type != "llama3" && type != "yarn")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "' is not modelled here", "known: default, linear, llama3, yarn");
  if (type != "default" && rope.number("partial_rotary_factor", 1.0) != 1.0)
    rope.fail("partial_rotary_factor", "the model turns all channels of a head", "leave it out");
}

/// Channels of a head that rotate: partial_rotary_factor of the rope parameters, or beside them, of head_dim
/// (…RotaryEmbedding.compute_default_rope_parameters).
inline std::int64_t read_rotary_dim(const Reader& t, std::int64_t head_dim, double absent) {
  const Reader rope = rope_parameters(t);
  t.without_effect({"partial_rotary_factor"});  // beside one among the rope parameters
  const Reader& at = rope.given("partial_rotary_factor") ? rope : t;
  const double factor = at.number("partial_rotary_factor", absent);
  const auto dim =
      factor > 0.0 && factor <= 1.0 ? static_cast<std::int64_t>(static_cast<double>(head_dim) * factor) : 0;
  if (dim < 2 || dim % 2 != 0)
    at.fail("partial_rotary_factor",
            "must leave an even number of the " + std::to_string(head_dim) + " channels of a head");
  return dim;
}

/// rope_parameters of models whose queries are scaled by their position: the class's own defaults have what that needs,
/// a given object must have it too.
inline void check_query_scale(const Reader& r) {
  if (!r.given("rope_parameters") && !r.given("rope_scaling")) return;
  const Reader rope = rope_parameters(r);
  for (const char* key : {"llama_4_scaling_beta", "original_max_position_embeddings"}) {
    if (!rope.given(key)) rope.fail(key, "missing", "the model scales its queries by it and cannot run without");
    rope.number(key, 0.0);
  }
}

/// models/ministral3/configuration_ministral3.py: Mistral's with heads of 128 channels, no window by default, and
/// queries that are scaled by their position.
inline DecoderConfig read_ministral3(const Reader& r) {
  LlamaConfig d =
      text_model(r, LlamaConfig{.vocab = 131072, .intermediate = 14336, .layers = 34, .query_scale = true}, 8, 128);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.window = r.optional_integer("sliding_window");
  if (d.window) d.sliding.assign(static_cast<std::size_t>(d.layers), true);
  check_query_scale(r);
  return d;
}

/// models/granite/configuration_granite.py. The multipliers' values change no byte; logits_scaling is the model's alone
/// (family/causal_lm/read.hpp).
inline DecoderConfig read_granite(const Reader& r) {
  LlamaConfig d = text_model(r, LlamaConfig{.multipliers = true}, std::nullopt, std::nullopt);
  d.qkv_bias = d.o_bias = r.boolean("attention_bias", false);
  d.mlp_bias = r.boolean("mlp_bias", false);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  return d;
}

/// models/phi3/configuration_phi3.py: "su" and "yarn" are older names of longrope; partial_rotary_factor stands among
/// the rope parameters or beside them, the original length beside them (modeling_rope_utils.py,
/// standardize_rope_params, puts it over what they say).
inline DecoderConfig read_phi3(const Reader& r, std::int64_t vocab, std::optional<std::int64_t> kv) {
  LlamaConfig d = text_model(r, LlamaConfig{.vocab = vocab, .hidden = 3072, .intermediate = 8192, .packed = true}, kv,
                             std::nullopt);
  d.residual_dropout = read_dropout(r, "resid_pdrop", 0.0);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.window = r.optional_integer("sliding_window");
  if (d.window) d.sliding.assign(static_cast<std::size_t>(d.layers), true);
  const Reader rope = rope_parameters(r);
  const std::string type = rope.string("rope_type", rope.string("type", "default"));
  if (type == "longrope" || type == "su" || type == "yarn")
    d.longrope = r.integer("original_max_position_embeddings", 4096);
  else if (type != "default")
    rope.fail("rope_type", "unknown '" + type + "'", "known: default, longrope");
  d.rotary_dim = read_rotary_dim(r, d.head_dim, 1.0);
  return d;
}
inline DecoderConfig read_phi3(const Reader& r) { return read_phi3(r, 32064, std::nullopt); }

/// Qwen2Config and Qwen3Config, __post_init__: with use_sliding_window and a window, layers from max_window_layers on
/// slide.
inline void read_qwen_window(const Reader& r, LlamaConfig& d) {
  r.without_effect({"sliding_window", "max_window_layers", "layer_types"});  // without use_sliding_window
  if (!r.boolean("use_sliding_window", false)) return;
  d.window = r.has("sliding_window") ? r.optional_integer("sliding_window") : std::optional<std::int64_t>(4096);
  const std::int64_t first = r.integer("max_window_layers", 28, 0, 1024);
  if (d.window) d.sliding = sliding_layers(r, d.layers, [&](std::int64_t i) { return i >= first; });
}

/// models/qwen2/configuration_qwen2.py.
inline DecoderConfig read_qwen2(const Reader& r) {
  LlamaConfig d = text_model(r, LlamaConfig{.vocab = 151936, .intermediate = 22016}, 32, std::nullopt);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.qkv_bias = true;
  read_qwen_window(r, d);
  return d;
}

/// models/qwen3/configuration_qwen3.py.
inline DecoderConfig read_qwen3(const Reader& r) {
  LlamaConfig d = text_model(r, LlamaConfig{.vocab = 151936, .intermediate = 22016}, 32, 128);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.qk_norm = true;
  d.qkv_bias = d.o_bias = r.boolean("attention_bias", false);
  read_qwen_window(r, d);
  return d;
}

}  // namespace vlmest::json::hf
