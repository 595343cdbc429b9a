// SPDX-License-Identifier: Apache-2.0
// Every shipped model can be trained in every way that concerns its ops, and what is alive at the peak adds up to it.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/training.hpp>

#include "../sanitizer.hpp"

namespace vlmest::trainable_models_test {
namespace {

const std::filesystem::path models = std::string(VLMEST_SOURCE_DIR) + "/models";

/// All but a classifier and DiffusionGemma, which return no loss, and Moondream, whose training is its own.
std::vector<std::string> names() {
  std::vector<std::string> r;
  for (const auto& f : std::filesystem::directory_iterator(models / "vlm"))
    if (const std::string name = f.path().stem().string();
        name != "shieldgemma-2-4b" && name != "moondream2" && !name.starts_with("diffusiongemma-"))
      r.push_back(name);
  std::sort(r.begin(), r.end());
  return r;
}

class TrainableModels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream in(models / "vlm" / (GetParam() + ".json"));
    model_ = json::read_model(nlohmann::json::parse(in), GetParam());
    plan_.batch = 2;
    const bool one_picture = model_.family.traits().instruction > 0 || GetParam() == "deepseek-ocr";
    plan_.images = one_picture ? 1 : 2;  // of an instruction, or of a prompt
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
  /// What a plan cannot be run as, by the choice that the error names; empty where it can.
  std::string refused(const Plan& plan) {
    try {
      train(plan);
    } catch (const Error& e) {
      EXPECT_FALSE(e.hint.empty()) << e.what();
      return e.where;
    }
    return {};
  }

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
  for (const DType t : {DType::fp32, DType::fp16}) {
    Plan typed = plan_;
    typed.dtype = t;
    if (const std::string choice = refused(typed); choice.empty()) {
      EXPECT_EQ(train(typed), reference) << name(t);
    } else {
      EXPECT_EQ(choice, "plan.dtype");  // dots.ocr's tower takes bf16 alone
    }
  }
  Plan fused = plan_, flash = plan_;
  fused.runtime = runtime_id("fused");
  flash.attention = AttentionKind::flash;
  if (const std::string choice = refused(fused); choice.empty()) {
    same("fused", [](Plan& p) { p.runtime = runtime_id("fused"); });
    Plan chunked = fused;
    chunked.loss = Loss::chunked;
    if (const std::string loss = refused(chunked); loss.empty()) {
      EXPECT_EQ(train(chunked), reference) << "fused, chunked loss";
    } else {
      EXPECT_EQ(loss, "plan.loss");
    }
    same("fused, checkpointed", [](Plan& p) {
      p.runtime = runtime_id("fused");
      p.checkpointing = Checkpointing::full;
    });
  } else {
    EXPECT_TRUE(choice == "plan.runtime" || choice == "plan.loss") << choice;
  }
  EXPECT_EQ(train(plan_, {.sm = 80, .multiprocessors = 108}), reference) << "another device";
  if (const std::string choice = refused(flash); choice.empty()) {
    same("flash", [](Plan& p) { p.attention = AttentionKind::flash; });
  } else {
    EXPECT_EQ(choice, "plan.attention");
  }
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
  Plan fused = plan_;
  fused.runtime = runtime_id("fused");
  if (refused(fused).empty()) {
    EXPECT_LT(saved(runtime_id("fused")), saved(runtime_id("transformers")));
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, TrainableModels, testing::ValuesIn(some_of(names(), 3)), [](const auto& name) {
  std::string r = name.param;
  for (char& c : r)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return r;
});

}  // namespace
}  // namespace vlmest::trainable_models_test
