// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <fstream>
#include <string>

#include <vlmest/json/hf/read.hpp>
#include <vlmest/nn/inference.hpp>

/// The models of the traces: published configs with their layers cut, widths kept.
namespace conformance {

/// How a trace was taken.
struct Recording {
  std::string config;  ///< path of the config.json
  std::string trace;
  std::int64_t batch = 1, images = 1, text = 100, height = 336, width = 336;
  bool eager = false;
  bool all_logits = false;
  int layers = 2;
};

/// The same cuts as the recorder's: two layers of each stack, six for Gemma-3 (five sliding, one full), five with one
/// cross-attention layer for Mllama, one of two window layers full.
inline nlohmann::json cut_layers(nlohmann::json d, int layers) {
  const std::string type = d.value("model_type", "");
  nlohmann::json& t = d.contains("text_config") ? d["text_config"] : d;
  if (t.contains("cross_attention_layers")) {
    t["num_hidden_layers"] = std::max(layers, 5);
    t["cross_attention_layers"] = {3};
  } else if (t.contains("sliding_window") && type == "gemma3") {
    t["num_hidden_layers"] = std::max(layers, 6);
  } else if (t.contains("num_hidden_layers")) {
    t["num_hidden_layers"] = layers;
  }
  if (d.contains("vision_config")) {
    nlohmann::json& v = d["vision_config"];
    if (v.contains("deepstack_visual_indexes")) {
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
    }
  }
  if (d.contains("qformer_config")) d["qformer_config"]["num_hidden_layers"] = 2;
  return d;
}

/// Builds the recorded run into the builder's graph. The recorded decode step is the second one after the prefill.
inline void build(vlmest::Builder& b, const Recording& r,
                  vlmest::Vlm (*read)(const nlohmann::json&, const std::string&) = vlmest::json::hf::read) {
  std::ifstream in(r.config);
  if (!in) throw std::runtime_error("cannot read " + r.config);
  const nlohmann::json document = cut_layers(nlohmann::json::parse(in), r.layers);
  const vlmest::Vlm vlm = read(document, r.config);
  vlmest::Plan plan;
  plan.batch = r.batch;
  plan.images = r.images;
  plan.text = r.text;
  plan.image_height = r.height;
  plan.image_width = r.width;
  plan.attention = r.eager ? vlmest::AttentionKind::eager : vlmest::AttentionKind::sdpa;
  plan.logits = r.all_logits ? vlmest::Logits::all : vlmest::Logits::last;
  vlmest::Context c{b, plan};
  const vlmest::Sequences s = vlmest::make_sequences(vlm, plan);
  vlmest::build_inference(c, vlm, s, s.seq + 2);
}

}  // namespace conformance
