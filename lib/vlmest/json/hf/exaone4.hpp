// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// models/exaone4/configuration_exaone4.py. Without layer_types every sliding_window_pattern-th layer is full: the
/// class can work that out of a number alone.
inline Exaone4Config exaone4_config(const Reader& r) {
  Exaone4Config d = text_model(r, Exaone4Config{}, 32, std::nullopt);
  if (r.is_null("head_dim")) r.fail("head_dim", "null, which the class takes for a size", "leave it out");
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.window = r.has("sliding_window") ? r.optional_integer("sliding_window") : std::optional<std::int64_t>(4096);
  check_layer_types(r);
  std::int64_t pattern = 1;
  r.without_effect({"sliding_window_pattern"});  // beside layer_types
  if (!r.given("layer_types")) {
    const bool number = !r.has("sliding_window_pattern") || r.value()["sliding_window_pattern"].is_number_integer();
    if (!d.window || !number)
      r.fail("layer_types", "missing",
             "transformers' class needs them without a window, and where the pattern is text");
    pattern = r.integer("sliding_window_pattern", 4, 1, 1024);
  }
  d.sliding = sliding_layers(r, d.layers, pattern);
  if (!d.window)
    for (const bool slides : d.sliding)
      if (slides) r.fail("layer_types", "sliding layers without a sliding_window", "give the window");
  return d;
}
inline DecoderConfig read_exaone4(const Reader& r) { return exaone4_config(r); }

}  // namespace vlmest::json::hf
