// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/glm4v_text.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/glm4v.hpp>

namespace vlmest {

/// GLM-4.1V and GLM-OCR (transformers models/glm4v, models/glm_ocr): Qwen2-VL's assembly, step for step, with a tower
/// and a text model of its own.
using Glm4vFamily = QwenVlFamily<Glm4vVision, Glm4vTextConfig>;

}  // namespace vlmest
