// SPDX-License-Identifier: Apache-2.0
// A training step with copied layers is the step of layers that were run one by one: the same ops in the same modules
// and the same bytes alive before, inside and after each, for every family and way of checkpointing.
#include <ostream>

#include <gtest/gtest.h>

#include <vlmest/nn/stack/registry.hpp>

#include "../conformance/compare.hpp"
#include "../conformance/recorded_model.hpp"
#include "../sanitizer.hpp"

namespace vlmest::repeated_layers_test {
namespace {

struct Case {
  const char* config;
  Checkpointing checkpointing = Checkpointing::off;
  AttentionKind attention = AttentionKind::sdpa;
  Trainable trainable;
  std::int64_t lora = 0;
  bool amp = false;
  std::int64_t gradient_accumulation = 1;
  std::optional<std::int64_t> checkpointed_layers;
  std::int64_t images = 1, vision_chunk = 0;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.config << " checkpointing " << static_cast<int>(c.checkpointing) << " lora " << c.lora << " chunk "
       << c.vision_chunk;
}

/// Five layers in each stack, so that most are copies.
nlohmann::json deeper(nlohmann::json d) {
  d = conformance::cut_layers(std::move(d), 5);
  if (d.contains("text_config") && d["text_config"].contains("sliding_window") && d.value("model_type", "") == "gemma3")
    d["text_config"]["num_hidden_layers"] = 9;
  if (d.contains("text_config"))
    for (const char* list : {"layer_types", "mlp_layer_types"})
      if (nlohmann::json& t = d["text_config"]; t.contains(list) && t[list].is_array())
        for (std::size_t i = 0; t[list].size() < t["num_hidden_layers"]; ++i) t[list].push_back(t[list][i]);
  if (d.contains("vision_config")) {
    nlohmann::json& v = d["vision_config"];
    if (v.contains("deepstack_visual_indexes") && !v["deepstack_visual_indexes"].empty())
      v["deepstack_visual_indexes"] = {1, 3};
    if (v.contains("fullatt_block_indexes")) v["fullatt_block_indexes"] = {1, 4};
    if (v.contains("depth"))
      v["depth"] = 5;
    else if (!v.contains("intermediate_layers_indices"))
      v["num_hidden_layers"] = 5;
  }
  return d;
}

using Rows = std::vector<conformance::GraphRow>;
/// The rows of every phase.
std::vector<Rows> rows(const Vlm& vlm, const Case& c, bool copies) {
  Plan plan;
  plan.batch = 2;
  plan.text = 60;
  plan.checkpointing = c.checkpointing;
  plan.checkpointed.layers = c.checkpointed_layers;
  plan.attention = c.attention;
  plan.trainable = c.trainable;
  plan.lora.rank = c.lora;
  plan.amp = c.amp;
  plan.gradient_accumulation = c.gradient_accumulation;
  plan.images = c.images;
  plan.vision_chunk = c.vision_chunk;
  Builder b;
  b.copy_layers = copies;
  Context context{b, plan, stack_of(plan)};
  build_training(context, vlm, make_sequences(vlm, plan));
  std::vector<Rows> r;
  while (!b.graph.phases.empty()) {
    const std::string_view phase = name(b.graph.phases.front().kind);
    r.push_back(conformance::rows_of(b.graph, phase, [](Bytes n) { return n.value(); }));
    b.graph.phases.erase(b.graph.phases.begin());
  }
  return r;
}

class RepeatedLayers : public testing::TestWithParam<Case> {};

TEST_P(RepeatedLayers, GiveTheSameStep) {
  const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/" + std::string(GetParam().config) + ".json";
  const Vlm vlm = json::read_model(deeper(conformance::read_json(path)), path);
  const std::vector<Rows> one_by_one = rows(vlm, GetParam(), false), copied = rows(vlm, GetParam(), true);
  ASSERT_EQ(one_by_one.size(), copied.size());
  for (std::size_t phase = 0; phase < copied.size(); ++phase) {
    ASSERT_EQ(one_by_one[phase].size(), copied[phase].size()) << phase;
    for (std::size_t i = 0; i < copied[phase].size(); ++i) {
      const auto &a = one_by_one[phase][i], &b = copied[phase][i];
      const testing::Message where = testing::Message()
                                     << "phase " << phase << " node " << i << " " << a.op << " in " << a.module;
      ASSERT_EQ(a.op, b.op) << where;
      ASSERT_EQ(a.module, b.module) << where;
      ASSERT_EQ(a.outputs, b.outputs) << where;
      ASSERT_EQ(a.before, b.before) << where;
      ASSERT_EQ(a.peak, b.peak) << where;
      ASSERT_EQ(a.after, b.after) << where;
    }
  }
}

/// Bytes alive when the forward has ended.
std::int64_t saved(std::int64_t checkpointed_layers) {
  const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/llava-1.5-7b.json";
  const auto phases =
      rows(json::read_model(deeper(conformance::read_json(path)), path),
           {.config = "llava-1.5-7b", .checkpointing = Checkpointing::full, .checkpointed_layers = checkpointed_layers},
           true);
  return phases.front().back().after;
}

TEST(CheckpointedLayers, EachKeepsItsInputAlone) {
  const std::int64_t each = saved(1) - saved(2), first = saved(0) - saved(1);
  EXPECT_GT(each, 0);
  EXPECT_LT(first, each) << "the arguments that all layers get are kept once";
  EXPECT_GT(first, each - 16384);
  EXPECT_EQ(saved(2) - saved(4), 2 * each);
  EXPECT_EQ(saved(5), saved(9)) << "there are five";
}

const std::vector<Case> cases() {
  std::vector<Case> r;
  for (const char* config : {"llava-1.5-7b",
                             "llava-next-mistral-7b",
                             "llava-onevision-qwen2-0.5b",
                             "qwen2-vl-2b",
                             "qwen2.5-vl-3b",
                             "qwen3-vl-4b",
                             "qwen3-vl-30b-a3b",
                             "qwen3.5-4b",
                             "qwen3.5-35b-a3b",
                             "internvl3-2b",
                             "qianfan-ocr",
                             "paligemma-3b-224",
                             "gemma-3-4b",
                             "gemma-4-e2b",
                             "gemma-4-26b-a4b",
                             "gemma-4-12b",
                             "aria",
                             "idefics2-8b",
                             "idefics3-8b",
                             "smolvlm-2.2b",
                             "pixtral-12b",
                             "mistral-small-3.1-24b",
                             "aya-vision-8b",
                             "glm-4.1v-9b",
                             "blip2-opt-2.7b",
                             "instructblip-vicuna-7b",
                             "lfm2-vl-450m",
                             "llava-next-video-7b",
                             "video-llava-7b",
                             "florence-2-base",
                             "llama4-variant",
                             "muse-glimmer-variant",
                             "granite4-vision-variant",
                             "ernie4.5-vl-variant",
                             "gemma-3n-e2b-cut",
                             "fastvlm-branches",
                             "phi-4-multimodal-variant",
                             "minimax-m3-variant",
                             "step-3.7-flash-variant",
                             "perception-lm-variant",
                             "molmo2-variant",
                             "kimi-vl-variant",
                             "minicpmv-variant",
                             "phi3_v-variant",
                             "dots-ocr-variant",
                             "nemotron-vl-variant",
                             "llama-3.2-11b-vision"})
    for (Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective})
      r.push_back({config, how});
  for (const char* config :
       {"llava-1.5-7b", "gemma-3-4b", "qwen3-vl-30b-a3b", "llama-3.2-11b-vision", "blip2-opt-2.7b"})
    for (Checkpointing how : {Checkpointing::full, Checkpointing::selective})
      r.push_back({config, how, AttentionKind::sdpa, {}, 0, false, 1, 2});
  for (AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
    r.push_back({"blip2-flan-t5-xl", Checkpointing::off, attention});
    r.push_back({"blip2-flan-t5-xl", Checkpointing::off, attention, {}, 0, true, 2});
  }
  r.push_back({"blip2-flan-t5-xl", Checkpointing::off, AttentionKind::sdpa, {}, 8});
  r.push_back({"blip2-flan-t5-xl", Checkpointing::off, AttentionKind::sdpa, {.language = false}});
  r.push_back({"llava-1.5-7b", Checkpointing::off, AttentionKind::eager});
  r.push_back({"llava-1.5-7b", Checkpointing::selective, AttentionKind::eager});
  r.push_back({"llava-1.5-7b", Checkpointing::full, AttentionKind::sdpa, {.vision = false}});
  for (const char* config : {"glm-4.1v-9b", "qwen3-vl-30b-a3b"})
    r.push_back({config, Checkpointing::selective, AttentionKind::sdpa, {.vision = false}});
  for (const char* config : {"blip2-opt-2.7b", "llama-3.2-11b-vision"}) {
    r.push_back({config, Checkpointing::off, AttentionKind::sdpa, {}, 0, true});
    r.push_back({config, Checkpointing::off, AttentionKind::sdpa, {}, 0, false, 2});
    r.push_back({config, Checkpointing::off, AttentionKind::sdpa, {.vision = false}});
    r.push_back({config, Checkpointing::off, AttentionKind::sdpa, {.language = false}});
  }
  r.push_back({"qwen2.5-vl-3b", Checkpointing::off, AttentionKind::sdpa, {.vision = false}});
  r.push_back({"llava-1.5-7b", Checkpointing::off, AttentionKind::sdpa, {.language = false}});
  r.push_back({"llava-1.5-7b", Checkpointing::off, AttentionKind::sdpa, {}, 16});
  r.push_back({"qwen2.5-vl-3b", Checkpointing::full, AttentionKind::sdpa, {}, 16});
  for (Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    r.push_back({"qwen2-vl-2b", how, AttentionKind::sdpa, {}, 0, true});
    r.push_back({"llava-1.5-7b", how, AttentionKind::sdpa, {}, 0, false, 3});
    r.push_back({"llava-1.5-7b", how, AttentionKind::sdpa, {}, 8, false, 2});
  }
  return r;
}
INSTANTIATE_TEST_SUITE_P(Families, RepeatedLayers, testing::ValuesIn(some_of(cases(), 2)));

/// Three calls of the tower: the first, one between, and the last, which is shorter where a call sees three images of
/// eight. Their layers' gradients are added up.
std::vector<Case> chunked_cases() {
  std::vector<Case> r;
  const auto add = [&](Case c, std::int64_t images, std::int64_t chunk) {
    c.images = images;
    c.vision_chunk = chunk;
    r.push_back(c);
  };
  for (const char* config :
       {"llava-1.5-7b", "llava-next-mistral-7b", "qwen2.5-vl-3b", "qwen3-vl-4b", "internvl3-2b", "qianfan-ocr",
        "smolvlm-2.2b", "pixtral-12b", "glm-4.1v-9b", "llama-3.2-11b-vision", "gemma-4-e2b"})
    add({config}, 2, 1);
  for (Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    add({"qwen2-vl-2b", how}, 4, 3);
    add({"llava-1.5-7b", how, AttentionKind::sdpa, {}, 0, false, 3}, 4, 3);
  }
  add({"blip2-opt-2.7b", Checkpointing::full}, 1, 1);
  add({"llava-1.5-7b", Checkpointing::full, AttentionKind::eager, {.vision = false}}, 2, 1);
  add({"llava-1.5-7b", Checkpointing::full, AttentionKind::sdpa, {}, 8}, 2, 1);
  add({"qwen2-vl-2b", Checkpointing::off, AttentionKind::sdpa, {}, 0, true}, 2, 1);
  return r;
}
INSTANTIATE_TEST_SUITE_P(Chunked, RepeatedLayers, testing::ValuesIn(some_of(chunked_cases(), 2)));

}  // namespace
}  // namespace vlmest::repeated_layers_test
