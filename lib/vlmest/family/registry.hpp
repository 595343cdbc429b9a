// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/aria/read.hpp>
#include <vlmest/family/aya_vision/read.hpp>
#include <vlmest/family/blip2/read.hpp>
#include <vlmest/family/causal_lm/read.hpp>
#include <vlmest/family/cohere2_vision/read.hpp>
#include <vlmest/family/cohere_compass/read.hpp>
#include <vlmest/family/deepseek_ocr2/read.hpp>
#include <vlmest/family/deepseek_vl/read.hpp>
#include <vlmest/family/deepseek_vl_hybrid/read.hpp>
#include <vlmest/family/diffusion_gemma/read.hpp>
#include <vlmest/family/dots_ocr/read.hpp>
#include <vlmest/family/ernie4_5_vl_moe/read.hpp>
#include <vlmest/family/exaone4_5/read.hpp>
#include <vlmest/family/fast_vlm/read.hpp>
#include <vlmest/family/florence2/read.hpp>
#include <vlmest/family/gemma3/read.hpp>
#include <vlmest/family/gemma3n/read.hpp>
#include <vlmest/family/gemma4/read.hpp>
#include <vlmest/family/glm4v/read.hpp>
#include <vlmest/family/glmasr/read.hpp>
#include <vlmest/family/got_ocr2/read.hpp>
#include <vlmest/family/granite4_vision/read.hpp>
#include <vlmest/family/hunyuan_vl/read.hpp>
#include <vlmest/family/idefics2/read.hpp>
#include <vlmest/family/idefics3/read.hpp>
#include <vlmest/family/internlm2/read.hpp>
#include <vlmest/family/internvl/read.hpp>
#include <vlmest/family/janus/read.hpp>
#include <vlmest/family/kimi_k25/read.hpp>
#include <vlmest/family/kimi_vl/read.hpp>
#include <vlmest/family/lfm2_vl/read.hpp>
#include <vlmest/family/lighton_ocr/read.hpp>
#include <vlmest/family/llama4/read.hpp>
#include <vlmest/family/llava/read.hpp>
#include <vlmest/family/llava_next/read.hpp>
#include <vlmest/family/llava_next_video/read.hpp>
#include <vlmest/family/llava_onevision/read.hpp>
#include <vlmest/family/minicpmv/read.hpp>
#include <vlmest/family/minicpmv4_6/read.hpp>
#include <vlmest/family/minimax_m3_vl/read.hpp>
#include <vlmest/family/mistral3/read.hpp>
#include <vlmest/family/mllama/read.hpp>
#include <vlmest/family/molmo2/read.hpp>
#include <vlmest/family/moondream/read.hpp>
#include <vlmest/family/muse_glimmer/read.hpp>
#include <vlmest/family/nemotron_h_vl/read.hpp>
#include <vlmest/family/ovis2/read.hpp>
#include <vlmest/family/paddleocr_vl/read.hpp>
#include <vlmest/family/paligemma/read.hpp>
#include <vlmest/family/perception_lm/read.hpp>
#include <vlmest/family/phi3_v/read.hpp>
#include <vlmest/family/phi4_multimodal/read.hpp>
#include <vlmest/family/qwen2_5_omni/read.hpp>
#include <vlmest/family/qwen2_5_vl/read.hpp>
#include <vlmest/family/qwen2_audio/read.hpp>
#include <vlmest/family/qwen2_vl/read.hpp>
#include <vlmest/family/qwen3_5/read.hpp>
#include <vlmest/family/qwen3_asr/read.hpp>
#include <vlmest/family/qwen3_omni_moe/read.hpp>
#include <vlmest/family/qwen3_vl/read.hpp>
#include <vlmest/family/step3p7/read.hpp>
#include <vlmest/family/video_llama_3/read.hpp>
#include <vlmest/family/video_llava/read.hpp>
#include <vlmest/family/vipllava/read.hpp>
#include <vlmest/family/voxtral/read.hpp>

/// The families: one row is a folder's include above and its name below. Everything that lists families is made of
/// these rows: what reads a config.json, docs/reference/description.schema.json, the recorder's table of model types.
namespace vlmest::family {

inline constexpr auto registry =
    json::family_rows<Idefics3, AyaVision, Cohere2Vision, Llava, LlavaNext, LlavaOnevision, VipLlava, Mistral3,
                      LightOnOcr, Qwen2Vl, Qwen2_5Vl, Qwen3Vl, Qwen35, Glm4v, Exaone45, MiniCpmV46, PaddleOcrVl,
                      HunYuanVl, VideoLlama3, CohereCompass, KimiK25, Blip2, InternVl, Mllama, PaliGemma, Gemma3,
                      Gemma3n, Gemma4, Qwen2Audio, Qwen2_5Omni, Qwen3Omni, Voxtral, GlmAsr, Qwen3Asr, GotOcr2,
                      DeepseekOcr2, DeepseekVl, DeepseekVlHybrid, Janus, CausalLm, InternLm2, Lfm2Vl, LlavaNextVideo,
                      VideoLlava, Florence2, Ovis2, Llama4, Aria, Idefics2, Moondream, MuseGlimmer, Granite4Vision,
                      Ernie4_5VlMoe, DiffusionGemma, Phi4Multimodal, MiniMaxM3Vl, Step3p7, FastVlm, PerceptionLm,
                      Molmo2, KimiVl, MiniCpmV, Phi3V, DotsOcr, NemotronHVl>;

}  // namespace vlmest::family
