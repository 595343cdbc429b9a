// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/aria/rule.hpp>
#include <vlmest/family/aya_vision/rule.hpp>
#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/family/cohere2_vision/rule.hpp>
#include <vlmest/family/gemma3/rule.hpp>
#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/family/hunyuan_vl/rule.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/family/lighton_ocr/rule.hpp>
#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/family/llava_next_video/rule.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/family/minicpmv4_6/rule.hpp>
#include <vlmest/family/mistral3/rule.hpp>
#include <vlmest/family/mllama/rule.hpp>
#include <vlmest/family/paddleocr_vl/rule.hpp>
#include <vlmest/family/paligemma/rule.hpp>
#include <vlmest/family/qwen2_vl/rule.hpp>
#include <vlmest/family/video_llama_3/rule.hpp>
#include <vlmest/family/video_llava/rule.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>

// Rules with other settings than their defaults, and one list of all.
namespace vlmest::test_rules {

using namespace image_processor;
using image_processor::Tiling;

inline const Qwen2Vl qwen2_vl_small{.budget = {3136, 28 * 28 * 1280}};
inline const Idefics3 idefics3{};
inline const Idefics3 idefics3_whole{.tiling = Tiling::never};
inline const Idefics3 smolvlm_2b{.tile_size = 384, .merge = 3, .longest_edge = 4 * 384};
inline const Idefics3 smolvlm_256m{.tile_size = 512, .patch_size = 16, .merge = 4, .longest_edge = 4 * 512};
inline const Gemma3 gemma3_scan{.pan_and_scan = true};
inline const Aria aria_split{.tiling = Tiling::automatic};

inline std::vector<ImageProcessor> all_rules() {
  return {Llava{},      LlavaNext{},    LlavaOnevision{}, Pixtral{},   Mistral3{},      Qwen2Vl{},   Qwen2_5Vl{},
          Qwen3Vl{},    Glm4v{},        InternVl{},       AyaVision{}, Cohere2Vision{}, PaliGemma{}, Gemma3{},
          gemma3_scan,  idefics3_whole, idefics3,         smolvlm_2b,  Mllama{},        Blip2{},     LlavaNextVideo{},
          VideoLlava{}, MiniCpm{},      PaddleOcr{},      HunYuan{},   VideoLlama3{},   Aria{},      aria_split};
}

}  // namespace vlmest::test_rules
