// SPDX-License-Identifier: Apache-2.0
// Every shipped model can be trained in every way that concerns its ops, and what is alive at the peak adds up to it.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/family/gemma4/unified.hpp>
#include <vlmest/family/qwen3_5/family.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/training.hpp>

#include "../sanitizer.hpp"

namespace vlmest::trainable_models_test {
namespace {

const std::filesystem::path models = std::string(VLMEST_SOURCE_DIR) + "/models";

std::vector<std::string> names() {
  std::vector<std::string> r;
  for (const auto& f : std::filesystem::directory_iterator(models / "vlm")) r.push_back(f.path().stem().string());
  std::sort(r.begin(), r.end());
  return r;
}

class TrainableModels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream in(models / "vlm" / (GetParam() + ".json"));
    model_ = json::read_model(nlohmann::json::parse(in), GetParam());
    plan_.batch = 2;
    plan_.images = 2;
    plan_.text = 64;
    plan_.image_height = 500;
    plan_.image_width = 333;
  }
  /// Shapes of the parameters that a step updates.
  std::multiset<std::string> train(const Plan& plan, Gpu gpu = {}) {
    Builder b;
    b.gpu = gpu;
    Context c{b, plan, stack_of(plan)};
    Timeline timeline;
    static const Device device = load_device((models / "device" / "h200-sxm.json").string());
    const TrainingEstimate e = estimate_training(c, model_, make_sequences(model_, plan), device, timeline);
    Bytes sum{};
    for (const auto& t : e.tensors) sum += t.bytes;
    EXPECT_EQ(sum, e.peak);
    std::multiset<std::string> r;
    for (const Tensor& t : b.graph.tensors)
      if (t.role == Role::optimizer_state && std::string(t.name) == "exp_avg") r.insert(to_string(t.shape));
    return r;
  }
  bool has_t5() const { return get_if<Blip2T5Family>(&model_.family) != nullptr; }
  bool is_gemma4() const {
    return get_if<Gemma4Family>(&model_.family) != nullptr || get_if<Gemma4UnifiedFamily>(&model_.family) != nullptr;
  }
  bool refuses_flash() const { return get_if<Blip2Family>(&model_.family) != nullptr || has_t5() || is_gemma4(); }
  bool refuses_fused() const { return get_if<Qwen35Family>(&model_.family) != nullptr || has_t5() || is_gemma4(); }

  Vlm model_;
  Plan plan_;
};

TEST_P(TrainableModels, WhateverRunsTheSameParametersLearn) {
  const auto reference = train(plan_);
  EXPECT_GT(reference.size(), 100u);
  const auto same = [&](const char* what, auto&& change) {
    Plan p = plan_;
    change(p);
    SCOPED_TRACE(what);
    EXPECT_EQ(train(p), reference);
  };
  same("eager", [](Plan& p) { p.attention = AttentionKind::eager; });
  same("fp32", [](Plan& p) { p.dtype = DType::fp32; });
  same("fp16", [](Plan& p) { p.dtype = DType::fp16; });
  if (!refuses_fused()) {
    same("fused", [](Plan& p) { p.runtime = runtime_id("fused"); });
    same("fused, chunked loss", [](Plan& p) {
      p.runtime = runtime_id("fused");
      p.loss = Loss::chunked;
    });
    same("fused, checkpointed", [](Plan& p) {
      p.runtime = runtime_id("fused");
      p.checkpointing = Checkpointing::full;
    });
  }
  EXPECT_EQ(train(plan_, {.sm = 80, .multiprocessors = 108}), reference) << "another device";
  if (!refuses_flash()) same("flash", [](Plan& p) { p.attention = AttentionKind::flash; });
}

TEST_P(TrainableModels, FusedKeepsLessThanItsModules) {
  const auto saved = [&](Runtime runtime) {
    Plan p = plan_;
    p.runtime = runtime;
    Builder b;
    Context c{b, p, stack_of(p)};
    Timeline timeline;
    static const Device device = load_device((models / "device" / "h200-sxm.json").string());
    return estimate_training(c, model_, make_sequences(model_, p), device, timeline).saved_activations;
  };
  if (refuses_fused())
    EXPECT_THROW(saved(runtime_id("fused")), Error);
  else
    EXPECT_LT(saved(runtime_id("fused")), saved(runtime_id("transformers")));
}

INSTANTIATE_TEST_SUITE_P(Shipped, TrainableModels, testing::ValuesIn(some_of(names(), 3)), [](const auto& name) {
  std::string r = name.param;
  for (char& c : r)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return r;
});

}  // namespace
}  // namespace vlmest::trainable_models_test
