// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/cohere_compass/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/cohere.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/cohere_compass/configuration_cohere_compass.py.
namespace vlmest::json::hf {

/// rope_parameters[type]: how many frequencies follow rows, columns and time; null: no positions.
inline std::vector<std::int64_t> read_compass_sections(const Reader& t, const char* type, std::int64_t head_dim) {
  const Reader rope = t.object("rope_parameters");
  if (!rope.has(type))
    rope.fail(type, "missing", "transformers' class needs an entry, which may be null, for each type of layer");
  if (rope.is_null(type)) return {};
  const Reader own = rope.object(type);
  std::vector<std::int64_t> s = own.integers("mrope_section", {22, 22, 20});
  std::int64_t sum = 0;
  for (const std::int64_t n : s) sum = n < 1 || n > 1 << 15 ? -1 : checked_add(sum, n);
  if (s.size() != 3 || sum != head_dim / 2)
    own.fail("mrope_section", "expected three counts that add up to half a head's channels");
  return s;
}

/// CohereCompassTextConfig: Cohere2's keys. Heads fill hidden_size whatever head_dim says; without layer_types no layer
/// slides, but the class makes a sliding mask for all that.
inline CompassTextConfig read_compass_text(const Reader& t) {
  CompassTextConfig d;
  d.layers = read_cohere_config(t);
  CohereConfig& g = d.layers;
  check_heads_fill(t, g.hidden, g.heads, g.head_dim);
  if (t.is_null("sliding_window")) t.fail("sliding_window", "null, but the model cannot run without a window");
  g.window = t.integer("sliding_window", 4096);
  check_layer_types(t);
  g.sliding = sliding_layers(t, g.layers, std::int64_t{1});
  d.full_sections =
      any_layer(d, false) ? read_compass_sections(t, "full_attention", g.head_dim) : std::vector<std::int64_t>{};
  d.sliding_sections =
      any_layer(d, true) ? read_compass_sections(t, "sliding_attention", g.head_dim) : std::vector<std::int64_t>{};
  return d;
}

/// model_type "cohere_compass".
inline Vlm read_cohere_compass(const Reader& r) {
  const Reader t = r.object("text_config");
  Vlm m = around_qwen3_tower<CompassFamily>(r, "cohere_compass", read_qwen3_vl_vision(r.object("vision_config")),
                                            read_compass_text(t));
  t.number("logit_scale", 1.0);
  get<CompassFamily>(m.family).scaled = t.given("logit_scale");
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct CohereCompass {
  static constexpr std::string_view folder = "cohere_compass";
  static constexpr std::array types{json::ModelType{.type = "cohere_compass",
                                                    .read = json::hf::read_cohere_compass,
                                                    .recorder = json::RecorderInputs{"native.qwen3_vl", 512}}};
  using Rules = json::Rules<image_processor::Qwen3Vl>;
};

}  // namespace vlmest::family
