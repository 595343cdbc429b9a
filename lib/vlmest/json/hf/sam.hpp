// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vision/sam.hpp>

namespace vlmest::json::hf {

/// models/sam/configuration_sam.py, SamVisionConfig, and its copies; `d` holds what a copy's class has of its own. An
/// absent mlp_dim is mlp_ratio times hidden_size, where `ratio` says so.
inline SamVision read_sam(const Reader& r, SamVision d = {}, bool ratio = true) {
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.out = r.integer("output_channels", d.out, 1, 1 << 20);
  d.layers = r.layers("num_hidden_layers", d.layers);
  d.heads = r.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.channels = r.integer("num_channels", d.channels, 1, 1 << 10);
  d.image_size = r.integer("image_size", d.image_size, 1, 1 << 16);
  d.patch_size = r.integer("patch_size", d.patch_size, 1, 1 << 16);
  d.activation = parse_activation(r.string("hidden_act", "gelu"));
  divides(r, "num_attention_heads", d.hidden, d.heads);
  if (d.patch_size > d.image_size) r.fail("patch_size", "larger than the image");
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.qkv_bias = r.boolean("qkv_bias", true);
  d.absolute = r.boolean("use_abs_pos", true);
  d.relative = r.boolean("use_rel_pos", true);
  d.window = r.integer("window_size", d.window, 0, 1 << 16);
  d.global_layers = r.integers("global_attn_indexes", d.global_layers);
  if (ratio) {
    const double inner = static_cast<double>(d.hidden) * r.number("mlp_ratio", 4.0);
    if (!(inner >= 1.0 && inner < 1 << 24)) r.fail("mlp_ratio", "must leave the MLP a width");
    d.mlp = static_cast<std::int64_t>(inner);
  }
  d.mlp = r.integer("mlp_dim", d.mlp, 1, 1 << 24);
  return d;
}

}  // namespace vlmest::json::hf
