// SPDX-License-Identifier: Apache-2.0
// A checkpoint's processor files, each as every family's, and what pictures and videos cost by what they set.
#include <vector>

#include <vlmest/json/hf/read.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/json/processor.hpp>

#include "target.hpp"

namespace {

using namespace vlmest;
using fuzz::require;

/// A model of each family, with as many keys as its config class needs.
const std::vector<Vlm>& models() {
  static const std::vector<Vlm> all = [] {
    std::vector<Vlm> r;
    for (const char* config :
         {R"({"model_type": "qwen2_vl"})",
          R"({"model_type": "qwen2_5_vl"})",
          R"({"model_type": "qwen3_vl", "vision_config": {"out_hidden_size": 4096}})",
          R"({"model_type": "glm4v"})",
          R"({"model_type": "glm46v"})",
          R"({"model_type": "llava_onevision"})",
          R"({"model_type": "internvl"})",
          R"({"model_type": "smolvlm", "scale_factor": 1})",
          R"({"model_type": "llava_next"})",
          R"({"model_type": "llava"})",
          R"({"model_type": "mistral3"})",
          R"({"model_type": "paligemma"})",
          R"({"model_type": "mllama"})",
          R"({"model_type": "kimi_k25"})",
          R"({"model_type": "kimi_vl"})",
          R"({"model_type": "minicpmv", "version": 2.6})",
          R"({"model_type": "phi3_v", "img_processor": {"name": "clip_vision_model", "num_img_tokens": 144,
              "model_name": "openai/clip-vit-large-patch14-336", "image_dim_out": 1024}, "embd_layer":
              {"embedding_cls": "image", "hd_transform_order": "sub_glb", "projection_cls": "mlp",
              "use_hd_transform": true, "with_learnable_separator": true}})",
          R"({"model_type": "dots_ocr", "hidden_size": 1536})",
          R"({"model_type": "NemotronH_Nano_VL_V2", "force_image_size": 512, "ps_version": "v2", "llm_config":
              {"hybrid_override_pattern": "M*-"}, "vision_config": {"args": {"model": "vit_huge_patch16_224",
              "teachers": [{"name": "clip"}], "cpe_max_size": 2048}}})",
          R"({"model_type": "llama4"})",
          R"({"model_type": "aria", "vision_config": {"patch_size": 14}})",
          R"({"model_type": "muse_glimmer"})",
          R"({"model_type": "ernie4_5_vl_moe"})",
          R"({"model_type": "gemma3n"})",
          R"({"model_type": "fast_vlm"})",
          R"({"model_type": "phi4_multimodal"})",
          R"({"model_type": "minimax_m3_vl"})",
          R"({"model_type": "step3p7", "text_config": {"sliding_window": 512}})",
          R"({"model_type": "molmo2", "vit_config": {"image_num_pos": 729}})",
          R"({"model_type": "perception_lm", "vision_config": {"architecture": "vit_pe_core_large_patch14_336",
              "model_args": {"embed_dim": 1024, "img_size": [448, 448]}}, "projector_pooling_ratio": 2})",
          R"({"model_type": "granite4_vision", "vision_feature_select_strategy": "full", "downsample_rate": "2/4",
              "image_grid_pinpoints": [[64, 128]], "deepstack_layer_map": [[0, 0]], "vision_config": {
              "model_type": "siglip_vision_model", "hidden_size": 64, "num_attention_heads": 1, "image_size": 64,
              "patch_size": 8}})"})
      r.push_back(json::read_model(nlohmann::json::parse(config), "config.json"));
    return r;
  }();
  return all;
}

void check(const ImageLayout& l) {
  require(l.llm_tokens > 0 && l.tiles > 0 && l.frames > 0 && l.text_overhead >= 0, "a layout of nothing");
  require(l.patches.rows > 0 && l.patches.cols > 0, "no patches");
}

void read_as(const nlohmann::json& document, json::ProcessorFile file, Vlm vlm) {
  try {
    for (const std::string& line : json::read_processor(document, "file", file, vlm))
      require(!line.empty() && line.size() <= 10000, "a line without end");
    for (const ImageSize size : {ImageSize{1, 1}, {336, 672}, {3000, 40}}) try {
        check(layout(vlm.image_processor, size));
      } catch (const Error& e) {
        fuzz::require_readable(e);
      }
    if (!takes_videos(vlm.image_processor)) return;
    for (const VideoSource& video :
         {VideoSource{{360, 640}, 16, 24, {}}, VideoSource{{360, 640}, 901, 30, 2.0}, VideoSource{{28, 28}, 2, 1, 0.5}})
      try {
        check(video_layout(vlm.image_processor, video));
      } catch (const Error& e) {
        fuzz::require_readable(e);
      }
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const nlohmann::json document = json::parse(fuzz::text(data, size), "file");
    for (const Vlm& vlm : models())
      for (const auto file :
           {json::ProcessorFile::preprocessor, json::ProcessorFile::processor, json::ProcessorFile::video})
        read_as(document, file, vlm);
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
