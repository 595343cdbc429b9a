// SPDX-License-Identifier: Apache-2.0
// Nemotron Nano V2 VL: which layers keep what, how its scan goes by chunks, what is refused.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/nemotron_h_vl/family.hpp>
#include <vlmest/family/nemotron_h_vl/rule.hpp>

#include "new_decoders_support.hpp"
#include "training_support.hpp"

namespace vlmest::nemotron_h_vl_family_test {
namespace {

using test::count;
using test::prefill_graph;
using test::prompts;
using Layer = NemotronHText::Layer;

NemotronHVlFamily family(std::vector<Layer> layers = {Layer::mamba, Layer::attention, Layer::mlp}) {
  NemotronHVlFamily f;
  f.vision = {.hidden = 64, .intermediate = 256, .layers = 2, .heads = 2, .image_size = 64, .max_size = 128};
  f.vision.class_tokens = f.vision.summaries = 1;
  f.language = {
      .vocab = 100, .hidden = 64, .intermediate = 96, .heads = 4, .kv_heads = 2, .head_dim = 16, .layers = layers};
  f.language.mamba = {.hidden = 64, .heads = 4, .head_dim = 16, .groups = 2, .state = 8, .chunk = 16};
  f.projector_hidden = 80;
  return f;
}
constexpr image_processor::NemotronHVl rule{.image_size = 64};
Vlm tiny() {
  Vlm m{.name = "tiny", .type = "NemotronH_Nano_VL_V2"};
  m.image_processor = rule;
  m.family = family();
  m.native = {64, 64};
  return m;
}

TEST(NemotronHVlFamily, ItsLayersAreOfThreeKinds) {
  const auto convolutions = [](std::vector<Layer> layers) {
    return count(prefill_graph(family(std::move(layers)), prompts(rule, {})), "convolution", "mixer");
  };
  EXPECT_EQ(convolutions({Layer::mamba, Layer::mamba, Layer::mlp}), 2);
  EXPECT_EQ(convolutions({Layer::attention, Layer::mlp}), 0);
}

TEST(NemotronHVlFamily, ATowerSeesAllTilesAtOnce) {
  const auto tower = [](std::vector<ImageSize> images) {
    return count(prefill_graph(family(), prompts(rule, images)), "addmm", "vision_model");
  };
  EXPECT_EQ(tower({{64, 64}}), tower({{64, 192}, {64, 64}}));
  EXPECT_EQ(tower({}), 0);
}

TEST(NemotronHVlFamily, WhatNoRunWasComparedWithIsRefused) {
  Plan p;
  p.text = 16;
  p.image_height = p.image_width = 64;
  EXPECT_NO_THROW(test::training(tiny(), p));
  Plan flash = p, amp = p, wide = p, chunk = p, text = p, both = p;
  flash.attention = AttentionKind::flash;
  amp.amp = true;
  wide.dtype = DType::fp32;
  chunk.vision_chunk = 1;
  text.images = 0;
  both.lora.rank = 8;
  EXPECT_NO_THROW(test::training(tiny(), both));
  both.checkpointing = Checkpointing::full;
  for (const auto& [what, other] : {std::pair{"flash", flash},
                                    {"amp", amp},
                                    {"fp32", wide},
                                    {"vision_chunk", chunk},
                                    {"no picture", text},
                                    {"adapters over checkpointed layers", both}})
    EXPECT_THROW(test::training(tiny(), other), Error) << what;
}

}  // namespace
}  // namespace vlmest::nemotron_h_vl_family_test
