// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/family/step3p7/text.hpp>
#include <vlmest/json/hf/text.hpp>

/// Step3p7TextConfig out of its keys, those of the released file among them, which come before transformers' own
/// (transformers 5.17, models/step3p7/configuration_step3p7.py, __post_init__ and attribute_map).
namespace vlmest::json::hf {

/// A list with an entry for each layer, as it counts: the released file also has entries for num_nextn_predict_layers
/// layers behind them, which are cut off.
inline nlohmann::json layer_list(const Reader& t, const char* key, std::int64_t layers, std::int64_t further) {
  nlohmann::json list = t.value()[key];
  if (!list.is_array()) t.fail(key, "expected a list with an entry for each layer");
  if (static_cast<std::int64_t>(list.size()) == layers + further) list.erase(list.begin() + layers, list.end());
  return list;
}
/// Which layers have `marked`, of two words.
inline std::vector<bool> read_layer_words(const Reader& t, const char* key, std::int64_t layers, std::int64_t further,
                                          std::string_view plain, std::string_view marked) {
  nlohmann::json cut = nlohmann::json::object();
  cut[key] = layer_list(t, key, layers, further);
  return marked_layers(Reader(cut, t), key, layers, plain, marked);
}

/// moe_layers_enum, numbers of layers in a list or in one string with commas; absent: all from the fourth on.
inline std::vector<bool> read_step_sparse_layers(const Reader& t, std::int64_t layers) {
  constexpr const char* key = "moe_layers_enum";
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  const auto mark = [&](std::int64_t i) {
    if (i >= 0 && i < layers) sparse[static_cast<std::size_t>(i)] = true;
  };
  if (!t.given(key)) {
    for (std::int64_t i = 3; i < layers; ++i) mark(i);
    return sparse;
  }
  if (!t.value()[key].is_string()) {
    for (const std::int64_t i : t.integers(key, {})) mark(i);
    return sparse;
  }
  const std::string text = t.string(key, "");
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    std::string_view word = std::string_view(text).substr(from, to - from);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    from = to + 1;
    if (word.empty()) continue;
    std::int64_t i = 0;
    if (const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), i);
        error != std::errc() || end != word.data() + word.size())
      t.fail(key, "expected numbers of layers with commas between them");
    mark(i);
  }
  return sparse;
}

/// Query heads of each layer: per_layer_config's, or num_sliding_attention_heads, or what attention_other_setting says,
/// of sliding layers.
inline std::vector<std::int64_t> read_layer_heads(const Reader& t, const Step3p7Text& d) {
  t.without_effect({"num_sliding_attention_heads", "attention_other_setting"});  // beside what comes before them
  std::vector<std::int64_t> heads(static_cast<std::size_t>(d.layers), d.heads);
  if (t.given("per_layer_config")) {
    const Reader own = t.object("per_layer_config");
    for (const auto& [name, keys] : own.value().items()) {
      const std::string at = name.substr(0, 64);
      std::int64_t i = -1;
      std::from_chars(name.data(), name.data() + name.size(), i);
      if (i < 0 || i >= d.layers) own.fail(at.c_str(), "is no layer", "layers are counted from 0");
      const Reader layer = own.object(name.c_str());
      for (const auto& e : layer.value().items())
        if (e.key() != "num_attention_heads")
          layer.fail(e.key().substr(0, 64).c_str(), "a value of a layer's own is not modelled",
                     "known: num_attention_heads");
      heads[static_cast<std::size_t>(i)] = layer.integer("num_attention_heads", d.heads, 1, 1 << 16);
    }
    return heads;
  }
  const std::int64_t sliding =
      t.given("num_sliding_attention_heads")
          ? t.integer("num_sliding_attention_heads", d.heads, 1, 1 << 16)
          : t.object("attention_other_setting").integer("num_attention_heads", d.heads, 1, 1 << 16);
  if (t.given("attention_other_setting"))
    t.object("attention_other_setting")
        .without_effect({"num_attention_heads", "num_attention_groups", "attention_type", "head_dim", "true_head_dim"});
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (d.sliding[i]) heads[i] = sliding;
  return heads;
}

/// Channels of a head that turn in layers of one type: of rope_parameters, where these have an entry for every type
/// that there is; else of the first such layer's entry in partial_rotary_factors, unless rope_scaling, which full
/// layers follow, has one of its own.
inline std::int64_t read_rotated(const Reader& t, const Step3p7Text& d, bool slides, std::int64_t further) {
  constexpr const char* list = "partial_rotary_factors";
  const auto first = std::find(d.sliding.begin(), d.sliding.end(), slides);
  if (first == d.sliding.end()) return d.head_dim;
  const Reader given = t.object("rope_parameters");
  const auto of_type = [&](bool s) { return given.object(s ? "sliding_attention" : "full_attention"); };
  const auto has = [&](bool s) {
    return std::find(d.sliding.begin(), d.sliding.end(), s) == d.sliding.end() ||
           given.given(s ? "sliding_attention" : "full_attention");
  };
  const auto checked = [&](const Reader& rope) {
    const std::string type = rope.string("rope_type", rope.string("type", "default"));
    if (type != "default" && type != "linear" && type != "llama3" && type != "yarn")
      rope.fail("rope_type", "'" + type.substr(0, 64) + "' is not modelled here",
                "known: default, linear, llama3, yarn");
  };
  const auto channels = [&](const Reader& at, const char* key, double factor) {
    const auto dim = factor > 0.0 && factor <= 1.0 ? static_cast<std::int64_t>(static_cast<double>(d.head_dim) * factor)
                                                   : std::int64_t{0};
    if (dim < 2 || dim % 2 != 0)
      at.fail(key, "must leave an even number of the " + std::to_string(d.head_dim) + " channels of a head");
    return dim;
  };
  if (has(false) && has(true)) {
    checked(of_type(slides));
    return channels(of_type(slides), "partial_rotary_factor", of_type(slides).number("partial_rotary_factor", 1.0));
  }
  if (!slides && t.given("rope_scaling")) {
    const Reader rope = t.object("rope_scaling");
    checked(rope);
    if (rope.given("partial_rotary_factor"))
      return channels(rope, "partial_rotary_factor", rope.number("partial_rotary_factor", 1.0));
  }
  if (!t.given(list)) return d.head_dim;
  const nlohmann::json factors = layer_list(t, list, d.layers, further);
  if (factors.empty()) return d.head_dim;
  const auto at = static_cast<std::size_t>(first - d.sliding.begin());
  if (at >= factors.size() || !factors[at].is_number()) t.fail(list, "expected a number for each layer");
  return channels(t, list, factors[at].get<double>());
}

/// Bounds of the experts' and of the other MLPs' gates: none of them changes a byte, but a list must have one for each
/// layer. Of `shared` the dense layers have some too.
inline void check_limits(const Reader& t, const char* key, const std::vector<bool>& asked, std::int64_t further) {
  if (!t.given(key)) return;
  const auto layers = static_cast<std::int64_t>(asked.size());
  const auto n = static_cast<std::int64_t>(layer_list(t, key, layers, further).size());
  for (std::int64_t i = n; n > 0 && i < layers; ++i)
    if (asked[static_cast<std::size_t>(i)]) t.fail(key, "has no entry for layer " + std::to_string(i));
}

/// Keys that change neither bytes nor work of the class: values, what it does in any case, the layers of multi-token
/// prediction, which it leaves on the disk, and keys of MiniMax-M3's config, whose class it is made from.
inline void skip_step_keys(const Reader& t) {
  t.without_effect({"moe_router_scaling_factor",
                    "moe_router_activation",
                    "use_moe_router_bias",
                    "need_fp32_gate",
                    "norm_expert_weight",
                    "use_qk_norm",
                    "use_head_wise_attn_gate",
                    "yarn_only_types",
                    "use_moe",
                    "moe_layer_offset",
                    "moe_every_n_layer",
                    "att_impl_type",
                    "sink",
                    "use_rope_layers",
                    "zero_centered",
                    "max_seq_len",
                    "num_nextn_predict_layers",
                    "num_mtp_layers",
                    "mtp_layer_types",
                    "mtp_mlp_layer_types",
                    "sparse_attention_config",
                    "moe_layer_freq",
                    "hidden_act",
                    "num_local_experts",
                    "tie_word_embeddings"});
  // Beside the released file's names of the same, or where per-layer lists come before them.
  t.without_effect({"n_routed_experts", "num_experts_per_tok", "share_expert_dim", "num_key_value_heads",
                    "moe_layers_enum", "partial_rotary_factors", "rope_scaling", "rope_parameters"});
}

inline Step3p7Text read_step_text(const Reader& t) {
  skip_step_keys(t);
  const auto named = [&](const char* file, const char* own) { return t.has(file) ? file : own; };
  const char *groups = named("num_attention_groups", "num_key_value_heads"),
             *experts = named("moe_num_experts", "n_routed_experts"), *top = named("moe_top_k", "num_experts_per_tok"),
             *shared = named("share_expert_dims", "share_expert_dim");
  refuse_null(t, {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                  "head_dim", "moe_intermediate_size", groups, experts, top, shared});
  Step3p7Text d;
  d.vocab = t.integer("vocab_size", d.vocab);
  d.hidden = t.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = t.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = t.layers("num_hidden_layers", d.layers);
  d.heads = t.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.kv_heads = t.integer(groups, d.kv_heads, 1, 1 << 16);
  d.head_dim = t.integer("head_dim", d.head_dim, 1, 1 << 16);
  if (d.head_dim % 2 != 0) t.fail("head_dim", "rotary embeddings need an even head size");
  d.attention_bias = t.boolean("attention_bias", false);
  d.mlp_bias = t.boolean("mlp_bias", false);
  d.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  d.moe.hidden = d.hidden;
  d.moe.inner = t.integer("moe_intermediate_size", d.moe.inner, 1, 1 << 24);
  d.moe.experts = t.integer(experts, d.moe.experts, 1, 1 << 16);
  d.moe.top_k = t.integer(top, d.moe.top_k, 1, 1 << 16);
  if (d.moe.top_k > d.moe.experts) t.fail(top, "more than there are experts");
  d.shared = t.integer(shared, d.shared, 1, 1 << 24);
  if (t.given("gating") && t.value()["gating"] != true && t.value()["gating"] != "per-head")
    t.fail("gating", "a gate for each channel is multiplied by heads, at which the class stops",
           "leave it out: one gate for each head");
  if (t.boolean("use_bidirectional_attention", false))
    t.fail("use_bidirectional_attention", "masks in both directions are not modelled for this type", "set it to false");
  if (!t.given("sliding_window"))
    t.fail("sliding_window", "missing, but the model makes a sliding mask whatever its layers are", "give a window");
  // Of a window of one token the cache would keep everything (DynamicSlidingWindowLayer).
  d.window = t.integer("sliding_window", 0, 2);
  const std::int64_t further = t.integer("num_nextn_predict_layers", 0, 0, 1024);
  d.sliding = t.given("layer_types")
                  ? read_layer_words(t, "layer_types", d.layers, further, "full_attention", "sliding_attention")
                  : std::vector<bool>(static_cast<std::size_t>(d.layers), false);
  d.sparse = t.given("mlp_layer_types") ? read_layer_words(t, "mlp_layer_types", d.layers, further, "dense", "sparse")
                                        : read_step_sparse_layers(t, d.layers);
  d.layer_heads = read_layer_heads(t, d);
  for (const std::int64_t n : d.layer_heads)
    if (n % d.kv_heads != 0)
      t.fail(groups, std::to_string(n) + " query heads cannot share " + std::to_string(d.kv_heads) + " key-value heads",
             "the heads of every layer must be a multiple of them");
  d.full_rotary_dim = read_rotated(t, d, false, further);
  d.sliding_rotary_dim = read_rotated(t, d, true, further);
  check_limits(t, "swiglu_limits", d.sparse, further);
  check_limits(t, "swiglu_limits_shared", std::vector<bool>(static_cast<std::size_t>(d.layers), true), further);
  return d;
}

}  // namespace vlmest::json::hf
