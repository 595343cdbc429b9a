// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/decoder/qwen_vl_text.hpp>
#include <vlmest/nn/vision/qwen2_5_vl.hpp>

/// What the configs of the Qwen line and of GLM-4V share: transformers 5.17, models/qwen2_vl/configuration_qwen2_vl.py
/// and models/qwen2_5_vl/configuration_qwen2_5_vl.py.
namespace vlmest::json::hf {

/// The text keys: in text_config, or, in the flat files of the hub, beside the others.
inline Reader qwen_text(const Reader& r) { return r.given("text_config") ? r.object("text_config") : r; }

/// tie_word_embeddings of the whole config, or of the text config where the former is not set.
inline bool qwen_tied(const Reader& r) {
  return r.boolean("tie_word_embeddings", false) ||
         (r.given("text_config") && r.object("text_config").boolean("tie_word_embeddings", false));
}

/// mrope_section of rope_parameters or rope_scaling: frequencies per axis.
inline std::vector<std::int64_t> mrope_sections(const Reader& t, std::vector<std::int64_t> absent) {
  const Reader rope = rope_parameters(t);
  std::vector<std::int64_t> s = rope.integers("mrope_section", std::move(absent));
  if (s.empty() || s.size() > 64) rope.fail("mrope_section", "expected a frequency count for each axis");
  for (auto n : s)
    if (n < 1 || n > 1 << 15) rope.fail("mrope_section", "every entry must lie between 1 and 32768");
  return s;
}

/// Sections for heads of another size than they were written for keep their proportions; transformers builds such a
/// model, with the parameters that it has, and stops only when it runs.
inline std::vector<std::int64_t> fit_sections(std::vector<std::int64_t> s, std::int64_t frequencies) {
  std::int64_t sum = 0, before = 0, placed = 0;
  for (auto n : s) sum += n;
  if (sum == frequencies) return s;
  for (auto& n : s) {
    before += n;
    n = checked_mul(before, frequencies) / sum - placed;
    placed += n;
  }
  return s;
}

/// What absent keys mean: those of Qwen2VLTextConfig and Qwen2_5_VLTextConfig, which agree.
struct QwenTextDefaults {
  std::int64_t kv_heads = 8, window = 4096, first_window_layer = 80;
};
inline QwenVlTextConfig read_qwen_vl_text(const Reader& t, QwenVlTextConfig d = {}, QwenTextDefaults absent = {}) {
  d.layers = text_model(t, d.layers, absent.kv_heads, std::nullopt);
  LlamaConfig& g = d.layers;
  check_heads_fill(t, g.hidden, g.heads, g.head_dim);
  t.without_effect({"sliding_window", "max_window_layers", "layer_types"});  // without use_sliding_window
  if (t.boolean("use_sliding_window", false)) {
    g.window = t.optional_integer("sliding_window");
    if (!t.has("sliding_window")) g.window = absent.window;
    g.sliding = sliding_layers(t, g.layers, [&](std::int64_t i) {
      return g.window && i >= t.integer("max_window_layers", absent.first_window_layer, 0, 1024);
    });
  }
  d.sections = fit_sections(mrope_sections(t, d.sections), g.head_dim / 2);
  return d;
}

/// What the vision configs of the Qwen line share.
template <class Vision>
Vision qwen_tower(const Reader& v, Vision d, const char* width_key, std::string_view activation) {
  v.without_effect({"in_chans", "spatial_patch_size", "tokens_per_second"});  // files have them, the classes do not
  d.hidden = v.integer(width_key, d.hidden, 1, 1 << 20);
  d.layers = v.layers("depth", d.layers);
  const char* const heads = v.either("num_heads", "num_attention_heads");
  d.heads = v.integer(heads, d.heads, 1, 1 << 16);
  d.patch_size = v.side("patch_size", d.patch_size);
  d.frames = v.side("temporal_patch_size", d.frames);
  d.channels = v.integer("in_channels", d.channels, 1, 1 << 10);
  d.merge = v.integer("spatial_merge_size", d.merge, 1, 64);
  d.activation = parse_activation(v.string("hidden_act", activation));
  divides(v, heads, d.hidden, d.heads);
  if (d.hidden / d.heads % 4 != 0) v.fail(heads, "rotation over two axes needs a head size that is a multiple of 4");
  return d;
}

}  // namespace vlmest::json::hf
