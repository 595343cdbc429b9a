// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/vision/intern_vit.hpp>

namespace vlmest::json::hf {

/// models/internvl/configuration_internvl.py, InternVLVisionConfig; `d` holds the class's defaults.
inline InternVitVision read_intern_vit_config(const Reader& r, InternVitVision d = {}) {
  d = vit(r, std::move(d), "gelu");
  d.qkv_bias = r.boolean("attention_bias", d.qkv_bias);
  d.qk_norm = r.boolean("use_qk_norm", false);
  const std::string norm = r.string("norm_type", "layer_norm");
  if (norm != "layer_norm" && norm != "rms_norm") r.fail("norm_type", "expected \"layer_norm\" or \"rms_norm\"");
  d.rms_norm = norm == "rms_norm";
  d.mask_token = r.boolean("use_mask_token", false);
  d.positions = r.boolean("use_absolute_position_embeddings", true);
  d.mean_pooling = r.boolean("use_mean_pooling", true);
  return d;
}
inline VisionConfig read_intern_vit(const Reader& r) { return read_intern_vit_config(r); }

}  // namespace vlmest::json::hf
