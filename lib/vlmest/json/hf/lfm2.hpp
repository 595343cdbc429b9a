// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// The width of the MLPs (modeling_lfm2.py, Lfm2MLP.__init__): `block_ff_dim`, an older name, comes before
/// intermediate_size; two thirds of it, scaled and rounded up, unless block_auto_adjust_ff_dim is off.
inline std::int64_t lfm2_mlp_width(const Reader& r) {
  constexpr std::int64_t most = 1 << 24;
  std::int64_t inner = r.integer("block_ff_dim", r.integer("intermediate_size", 12288, 1, most), 1, most);
  if (!r.boolean("block_auto_adjust_ff_dim", true)) return inner;
  inner = static_cast<std::int64_t>(static_cast<double>(2 * inner) / 3.0);
  if (!r.is_null("block_ffn_dim_multiplier")) {
    const double times = r.number("block_ffn_dim_multiplier", 1.0);
    if (!(times > 0.0 && times <= 1024.0)) r.fail("block_ffn_dim_multiplier", "must lie between 0 and 1024");
    inner = static_cast<std::int64_t>(times * static_cast<double>(inner));
    const std::int64_t whole = r.integer("block_multiple_of", 256, 1, most);
    inner = checked_mul(whole, (inner + whole - 1) / whole);
  }
  if (inner < 1) r.fail("intermediate_size", "leaves the MLPs no channel");
  return inner;
}

/// layer_types, or where it is absent attention in the layers of full_attn_idxs, or in all (Lfm2Config.__post_init__).
inline std::vector<bool> lfm2_full_layers(const Reader& r, std::int64_t layers) {
  if (!r.given("layer_types")) {
    std::vector<bool> full(static_cast<std::size_t>(layers), !r.given("full_attn_idxs"));
    for (const std::int64_t i : r.integers("full_attn_idxs", {}))
      if (i >= 0 && i < layers) full[static_cast<std::size_t>(i)] = true;
    return full;
  }
  return marked_layers(r, "layer_types", layers, "conv", "full_attention");
}

/// models/lfm2/configuration_lfm2.py.
inline DecoderConfig read_lfm2(const Reader& r) {
  Lfm2Config d;
  d.layers = text_model(r, d.layers, 8, std::nullopt);
  d.layers.activation = Activation::silu;  // of the class, whatever hidden_act says
  d.layers.intermediate = lfm2_mlp_width(r);
  d.full = lfm2_full_layers(r, d.layers.layers);
  d.taps = r.integer("conv_L_cache", d.taps, 1, 64);
  d.conv_bias = r.boolean("conv_bias", false);
  return d;
}

}  // namespace vlmest::json::hf
