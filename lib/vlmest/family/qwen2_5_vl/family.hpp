// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen2_5_vl.hpp>

namespace vlmest {

/// Qwen2.5-VL (transformers models/qwen2_5_vl): Qwen2-VL's assembly around a tower with windows.
using Qwen2_5VlFamily = QwenVlFamily<Qwen2_5VlVision>;

/// modeling_qwen2_5_vl.py, get_rope_index: tokens_per_second times the seconds of a temporal patch.
constexpr bool spaces_frames(const Qwen2_5VlVision&) { return true; }

}  // namespace vlmest
