// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/family/aria/rule.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/family/deepseek_ocr2/ocr_rule.hpp>
#include <vlmest/family/got_ocr2/rule.hpp>
#include <vlmest/family/idefics2/family.hpp>
#include <vlmest/family/idefics2/rule.hpp>
#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/family/perception_lm/rule.hpp>
#include <vlmest/family/phi3_v/rule.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "trace.hpp"

/// The models of the traces: published configs with their layers cut, widths kept.
namespace conformance {

/// Rows that went to each expert of a layer in a forward over so many rows: a random router's choice, which decides the
/// sizes of products that run expert by expert.
using Routed = std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::int64_t>>;

/// Those of experts that are modules of their own: the rows of each one's gate_proj (DeepSeek-OCR's
/// modeling_deepseekv2.py). In inference the ones without rows are not called.
inline Routed rows_of_listed_experts(const std::vector<TraceRow>& trace) {
  constexpr std::string_view list = ".mlp.experts.", gate = ".gate_proj", stack = ".layers.";
  std::map<std::pair<std::string, std::int32_t>, std::vector<std::int64_t>> by_phase;
  for (const TraceRow& t : trace) {
    const std::size_t at = t.module.find(list);
    if (t.op != "mm" || at == std::string::npos || !t.module.ends_with(gate) || t.phase == "backward") continue;
    auto& rows = by_phase[{t.phase, std::stoi(t.module.substr(t.module.find(stack) + stack.size()))}];
    const auto expert = static_cast<std::size_t>(std::stoi(t.module.substr(at + list.size())));
    if (rows.size() <= expert) rows.resize(expert + 1);
    rows[expert] = std::stoll(t.outputs.at(0));
  }
  Routed r;
  for (const auto& [place, rows] : by_phase) {
    std::int64_t all = 0;
    for (const std::int64_t n : rows) all += n;
    r[{place.second, all}] = rows;
  }
  return r;
}

/// The layer that a module stands in.
inline std::int32_t layer_of_module(const std::string& module) {
  constexpr std::string_view stack = ".layers.";
  return std::stoi(module.substr(module.rfind(stack) + stack.size()));
}

/// Those of a trace: the products of the first of an expert's two modules, in order (modeling_aria.py,
/// sequential_experts_gemm), or the first one of every two that one module runs for all of them (modeling_step3p7.py,
/// Step3p7Experts), which has none for experts without rows. Empty where experts run otherwise.
inline Routed routed_rows(const std::vector<TraceRow>& trace) {
  constexpr std::string_view of_first = ".mlp.experts.fc1", of_both = ".mlp.experts";
  std::map<std::pair<std::string, std::int32_t>, std::vector<std::int64_t>> by_phase;
  std::map<std::pair<std::string, std::int32_t>, int> products;
  for (const TraceRow& t : trace) {
    const bool both = t.module.ends_with(of_both);
    if (t.op != "mm" || !(both || t.module.ends_with(of_first)) || t.phase == "backward") continue;
    const std::pair place{t.phase, layer_of_module(t.module)};
    if (both && products[place]++ % 2 == 1) continue;
    by_phase[place].push_back(std::stoll(t.outputs.at(0)));
  }
  Routed r = rows_of_listed_experts(trace);
  for (const auto& [place, rows] : by_phase) {
    std::int64_t all = 0;
    for (const std::int64_t n : rows) all += n;
    r[{place.second, all}] = rows;
  }
  return r;
}

/// How a trace was taken.
struct Recording {
  std::string config;  ///< path of the config.json, or of a description that holds one
  std::string part;    ///< the key of the config that was run alone; empty: all of it
  std::int64_t batch = 1, text = 100;
  std::int64_t new_tokens = 2;   ///< up to the decode step
  std::int64_t target = 0;       ///< labels of a sequence that the decoder of an encoder-decoder model is trained on
  std::int64_t instruction = 0;  ///< tokens of the instruction that a Q-Former reads
  bool tied_head = false;        ///< T5's head is the embedding, as its class ties it, whatever the config says
  std::vector<std::vector<vlmest::ImageSize>> sequences{
      {{336, 336}}};         ///< images of each sequence; one entry: all alike
  std::int64_t frames = 0;   ///< of a video of each sequence, handed over as they are
  vlmest::ImageSize frame;   ///< their size
  double audio_seconds = 0;  ///< of each clip of a sequence
  std::int64_t clips = 1;
  vlmest::DType dtype = vlmest::DType::bf16;
  bool eager = false;
  bool all_logits = false;
  bool dropout = false;  ///< recorded in training mode (the recorder left it on), which shows where a model has dropout
  bool tile_several = true;                 ///< LLaVA-OneVision: several images of a prompt are cut into tiles too
  bool whole_images = false;                ///< Idefics2, Idefics3, SmolVLM, PerceptionLM: no image is cut
  bool cut_images = false;                  ///< GOT-OCR 2.0: images are cut into tiles
  std::int64_t square = 0;                  ///< Aria: max_image_size, where it is not the processor's
  std::int64_t num_crops = 0;               ///< Phi-3-vision: of the processor, where it is not Phi-3.5-vision's
  std::optional<vlmest::DType> pixel_mask;  ///< Idefics2: type of pixel_attention_mask, where it is not the pixels'
  bool training = false;                    ///< a training step instead of a prefill and a decode step
  vlmest::Optimizer optimizer = vlmest::Optimizer::adamw;
  bool vision_frozen = false;
  bool checkpointing = false;             ///< full
  vlmest::KernelPackages packages;        ///< that were installed
  std::int64_t lora_rank = 0;             ///< of adapters on the language model's q, k, v and o
  std::vector<std::string> lora_targets;  ///< on these modules instead, where there are any
  Routed routed;                          ///< where its router sent tokens, where that decides what runs
  std::optional<int> layers = 2;          ///< layers that each stack was cut to; none: the config as it is
};

/// Layers of a tower that are needed for the hidden states that `features` names: 0 is the embeddings', -1 the last.
inline int needed_layers(const nlohmann::json& features) {
  int needed = 0;
  for (const int i : features) needed = std::max(needed, i < 0 ? -i - 1 : i);
  return needed;
}

/// Of Gemma 4 and DiffusionGemma the first of a sliding, a full, two sliding and a full layer, of which the last two
/// share keys where the model's last layers do; two layers of each tower.
inline nlohmann::json cut_gemma4(nlohmann::json d, int layers) {
  nlohmann::json& t = d.contains("text_config") ? d["text_config"] : d;
  const bool shares = t.value("num_kv_shared_layers", 0) > 0 && layers >= 5;
  nlohmann::json types = {"sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                          "full_attention"};
  types.erase(types.begin() + layers, types.end());
  t["layer_types"] = types;
  t["num_hidden_layers"] = layers;
  t["num_kv_shared_layers"] = shares ? 2 : 0;
  for (const char* tower : {"vision_config", "audio_config"})
    if (d.contains(tower) && d["model_type"] != "gemma4_unified") d[tower]["num_hidden_layers"] = 2;
  return d;
}

/// The same cuts as the recorder's: two layers of each stack, six for Gemma-3 (five sliding, one full), five with one
/// cross-attention layer for Mllama, one of two window layers full; towers whose inner layers are looked at keep those.
/// Language models alone of kinds that have a full layer after several sliding ones keep one of each.
inline nlohmann::json cut_layers(nlohmann::json d, int layers) {
  const std::string type = d.value("model_type", "");
  nlohmann::json& t = d.contains("text_config") ? d["text_config"] : d;
  if (type.starts_with("gemma4") || type == "diffusion_gemma") return cut_gemma4(std::move(d), layers);
  if (t.contains("cross_attention_layers")) {
    t["num_hidden_layers"] = std::max(layers, 5);
    t["cross_attention_layers"] = {3};
  } else if (t.contains("sliding_window") && type == "gemma3") {
    t["num_hidden_layers"] = std::max(layers, 6);
  } else if (t.contains("num_hidden_layers")) {
    t["num_hidden_layers"] = layers;
  }
  for (const char* stack : {"num_layers", "num_decoder_layers"})
    if (t.value("model_type", "") == "t5" && t.contains(stack)) t[stack] = layers;
  if (auto types = t.find("layer_types"); types != t.end() && types->is_array())
    while (types->size() > t["num_hidden_layers"]) types->erase(types->size() - 1);
  if (auto types = t.find("mlp_layer_types"); types != t.end() && types->is_array())
    while (types->size() > t["num_hidden_layers"]) types->erase(types->size() - 1);
  if (type == "gemma3_text" || type == "cohere2") t["layer_types"] = {"sliding_attention", "full_attention"};
  if (d.contains("vision_config")) {
    nlohmann::json& v = d["vision_config"];
    if (v.contains("deepstack_visual_indexes") && !v["deepstack_visual_indexes"].empty()) {
      v["deepstack_visual_indexes"] = {0};
      v["depth"] = 2;
    } else if (v.contains("fullatt_block_indexes")) {
      v["depth"] = 2;
      v["fullatt_block_indexes"] = {1};
    } else if (v.contains("intermediate_layers_indices")) {
      v["num_hidden_layers"] = 3;
      v["num_global_layers"] = 1;
      v["intermediate_layers_indices"] = {1};
      v["vision_output_dim"] = 2 * v["hidden_size"].get<int>();
    } else if (v.contains("depth")) {
      v["depth"] = 2;
    } else if (v.contains("num_hidden_layers")) {
      v["num_hidden_layers"] = 2;
      for (const char* key : {"vision_feature_layer", "vision_feature_layers"})
        if (d.contains(key) && d[key].is_array()) v["num_hidden_layers"] = std::max(2, needed_layers(d[key]));
    }
  }
  if (d.contains("qformer_config")) d["qformer_config"]["num_hidden_layers"] = 2;
  if (type == "granite4_vision") {
    d["deepstack_layer_map"] = {{-2, 1}, {-1, 0}};
    d["spatial_target_layers"] = {0, 1};
  }
  return d;
}

/// The recorded batch: every sequence has the same number of tokens.
inline vlmest::Sequences sequences(const vlmest::Vlm& vlm, const Recording& r) {
  vlmest::ImageProcessor rule = vlm.image_processor;
  if (auto* ov = get_if<vlmest::image_processor::LlavaOnevision>(&rule)) ov->tile_several = r.tile_several;
  if (auto* split = get_if<vlmest::image_processor::Idefics3>(&rule); split != nullptr && r.whole_images)
    split->tiling = vlmest::image_processor::Tiling::never;
  if (auto* split = get_if<vlmest::image_processor::Idefics2>(&rule); split != nullptr && r.whole_images)
    split->tiling = vlmest::image_processor::Tiling::never;
  if (auto* split = get_if<vlmest::image_processor::PerceptionLm>(&rule); split != nullptr && r.whole_images)
    split->tiling = vlmest::image_processor::Tiling::never;
  if (auto* got = get_if<vlmest::image_processor::GotOcr2>(&rule); got != nullptr && r.cut_images)
    got->tiling = vlmest::image_processor::Tiling::automatic;
  if (auto* aria = get_if<vlmest::image_processor::Aria>(&rule); aria != nullptr && r.square > 0)
    aria->image_size = r.square;
  if (auto* phi = get_if<vlmest::image_processor::Phi3V>(&rule); phi != nullptr && r.num_crops > 0)
    phi->max_tiles = r.num_crops;
  vlmest::Sequences s{.batch = r.batch, .text = r.text, .target = r.target, .instruction = r.instruction};
  for (std::int64_t b = 0; b < r.batch; ++b) {
    const auto& images = r.sequences[static_cast<std::size_t>(b) % r.sequences.size()];
    std::int64_t tokens = 0;
    for (const auto& l : layouts(rule, images)) {
      tokens += l.llm_tokens;
      s.images.push_back(l);
    }
    if (b > 0 && tokens != s.image_tokens) throw std::runtime_error("sequences of different lengths");
    s.image_tokens = tokens;
  }
  if (!r.sequences[0].empty()) s.image = r.sequences[0][0];
  if (r.frames > 0) {
    s.video = video_layout(rule, vlmest::VideoSource{.size = r.frame, .frames = r.frames, .fps = 2});
    s.video_tokens = s.video->llm_tokens;
    if (vlm.family.traits().videos == vlmest::VideoPixels::own) {
      s.videos.assign(static_cast<std::size_t>(r.batch), *s.video);
    } else {
      if (!s.images.empty()) throw std::runtime_error("frames behind images in one input");
      s.images.assign(static_cast<std::size_t>(r.batch), *s.video);
    }
  }
  if (r.audio_seconds > 0) {
    s.audios.assign(static_cast<std::size_t>(r.batch * r.clips), audio_layout(vlm.audio, {r.audio_seconds}));
    s.audio_tokens = s.audios.front().llm_tokens * r.clips;
  }
  s.seq = s.text + s.image_tokens + s.video_tokens + s.audio_tokens;
  return s;
}

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(in);
}

/// Builds the recorded run into the builder's graph. The recorded decode step is the second one after the prefill,
/// where nothing else is said.
inline void build(vlmest::Builder& b, const Recording& r) {
  nlohmann::json document = read_json(r.config);
  if (document.contains("model")) document = nlohmann::json(document["model"]);
  if (!r.part.empty()) document = nlohmann::json(document.at(r.part));
  if (r.layers) document = cut_layers(std::move(document), *r.layers);
  vlmest::Vlm vlm = vlmest::json::read_model(document, r.config);
  if (auto* masked = get_if<vlmest::Idefics2Family>(&vlm.family)) masked->pixel_mask = r.pixel_mask;
  if (auto* t5 = get_if<vlmest::Blip2T5Family>(&vlm.family); t5 != nullptr && r.tied_head) t5->language.tied = true;
  vlmest::Plan plan;
  plan.batch = r.batch;
  plan.text = r.text;
  plan.dtype = r.dtype;
  plan.dropout = r.dropout;
  plan.attention = r.eager ? vlmest::AttentionKind::eager : vlmest::AttentionKind::sdpa;
  plan.logits = r.all_logits ? vlmest::Logits::all : vlmest::Logits::last;
  plan.packages = r.packages;
  vlmest::Context c{b, plan, stack_of(plan)};
  const vlmest::RoutedRows routed{[&](std::int32_t layer, std::int64_t rows) { return r.routed.at({layer, rows}); }};
  if (!r.routed.empty()) c.routed_rows = &routed;
  const vlmest::Sequences s = sequences(vlm, r);
  b.observed = true;
  if (!r.training) {
    vlmest::build_inference(c, vlm, s, s.seq + r.new_tokens);
    return;
  }
  plan.optimizer = r.optimizer;
  plan.trainable.vision = !r.vision_frozen;
  plan.lora.rank = r.lora_rank;
  if (!r.lora_targets.empty()) plan.lora.targets = r.lora_targets;
  if (r.checkpointing) plan.checkpointing = vlmest::Checkpointing::full;
  vlmest::build_training(c, vlm, s);
}

}  // namespace conformance
