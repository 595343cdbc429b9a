// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/vision/qwen2_5_vl.hpp>

/// What the configs of Qwen2.5-VL, Qwen2.5-Omni and EXAONE 4.5 share.
namespace vlmest::json::hf {

/// Qwen2_5_VLVisionConfig, Qwen2_5OmniVisionEncoderConfig and Exaone4_5_VisionConfig.
inline Qwen2_5VlVision read_qwen2_5_tower(const Reader& v, Qwen2_5VlVision d = {}) {
  Qwen2_5VlVision g = qwen_tower(v, std::move(d), "hidden_size", "silu");
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.window_size = v.integer("window_size", g.window_size, g.patch_size * g.merge, 1 << 20);
  g.full_attention = v.integers("fullatt_block_indexes", g.full_attention);  // those above the last layer match none
  for (auto i : g.full_attention)
    if (i < 0) v.fail("fullatt_block_indexes", "layers count from 0");
  g.out_hidden = v.integer("out_hidden_size", g.out_hidden, 1, 1 << 20);
  return g;
}

/// The image processor that a tower goes with.
inline image_processor::Qwen2_5Vl qwen2_5_processor(const Qwen2_5VlVision& g) {
  return {.patch_size = g.patch_size, .merge = g.merge, .temporal_patch_size = g.frames, .window_size = g.window_size};
}

}  // namespace vlmest::json::hf
