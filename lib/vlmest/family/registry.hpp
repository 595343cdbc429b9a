// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/aya_vision/read.hpp>
#include <vlmest/family/blip2/read.hpp>
#include <vlmest/family/causal_lm/read.hpp>
#include <vlmest/family/cohere2_vision/read.hpp>
#include <vlmest/family/florence2/read.hpp>
#include <vlmest/family/gemma3/read.hpp>
#include <vlmest/family/gemma4/read.hpp>
#include <vlmest/family/glm4v/read.hpp>
#include <vlmest/family/idefics3/read.hpp>
#include <vlmest/family/internlm2/read.hpp>
#include <vlmest/family/internvl/read.hpp>
#include <vlmest/family/lfm2_vl/read.hpp>
#include <vlmest/family/lighton_ocr/read.hpp>
#include <vlmest/family/llava/read.hpp>
#include <vlmest/family/llava_next/read.hpp>
#include <vlmest/family/llava_next_video/read.hpp>
#include <vlmest/family/llava_onevision/read.hpp>
#include <vlmest/family/mistral3/read.hpp>
#include <vlmest/family/mllama/read.hpp>
#include <vlmest/family/ovis2/read.hpp>
#include <vlmest/family/paligemma/read.hpp>
#include <vlmest/family/qwen2_5_vl/read.hpp>
#include <vlmest/family/qwen2_vl/read.hpp>
#include <vlmest/family/qwen3_5/read.hpp>
#include <vlmest/family/qwen3_vl/read.hpp>
#include <vlmest/family/video_llava/read.hpp>
#include <vlmest/family/vipllava/read.hpp>

/// The families: one row is a folder's include above and its name below. Everything that lists families is made of
/// these rows: what reads a config.json, docs/reference/description.schema.json, the recorder's table of model types.
namespace vlmest::family {

inline constexpr auto registry =
    json::family_rows<Idefics3, AyaVision, Cohere2Vision, Llava, LlavaNext, LlavaOnevision, VipLlava, Mistral3,
                      LightOnOcr, Qwen2Vl, Qwen2_5Vl, Qwen3Vl, Qwen35, Glm4v, Blip2, InternVl, Mllama, PaliGemma,
                      Gemma3, Gemma4, CausalLm, InternLm2, Lfm2Vl, LlavaNextVideo, VideoLlava, Florence2, Ovis2>;

}  // namespace vlmest::family
