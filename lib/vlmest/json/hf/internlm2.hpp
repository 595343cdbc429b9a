// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// OpenGVLab/InternVL internvl_chat/internvl/model/internlm2/configuration_internlm2.py. The scalings of rope_scaling
/// change the tables' values alone.
inline DecoderConfig read_internlm2(const Reader& r) {
  InternLm2Config d = text_model(r, InternLm2Config{}, std::nullopt, std::nullopt);
  check_heads_fill(r, d.hidden, d.heads, d.head_dim);
  d.positions = r.integer("max_position_embeddings", d.positions, 1, 1 << 24);
  d.bias = r.boolean("bias", d.bias);
  const std::string version = r.string("rope_pos_id_version", "default");
  if (version != "default") r.fail("rope_pos_id_version", "'" + version + "' is not modelled", "known: default");
  return d;
}

}  // namespace vlmest::json::hf
