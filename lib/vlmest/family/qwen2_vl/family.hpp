// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/qwen2_vl.hpp>

namespace vlmest {

/// Qwen2-VL (transformers models/qwen2_vl).
using Qwen2VlFamily = QwenVlFamily<Qwen2VlVision>;

}  // namespace vlmest
