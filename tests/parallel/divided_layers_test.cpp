// SPDX-License-Identifier: Apache-2.0
// Layers divided among GPUs by transformers' plans: what each rank holds, computes and sends, and runs of two ranks
// (tests/data/several_gpus/divided_layers.json).
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/json/hf/read.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/parallel/divided_layers.hpp>

#include "files.hpp"

namespace vlmest::parallel::divided_layers_test {
namespace {

const nlohmann::json& recorded() {
  static const nlohmann::json all = nlohmann::json::parse(
      std::ifstream(std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/divided_layers.json"));
  return all;
}
Vlm model(const std::string& name) { return json::hf::read(recorded().at("configs").at(name), name); }
const Device& device() {
  static const Device d = tool::find_device("h100-sxm");
  return d;
}

Plan small(int ranks, bool experts = false) {
  Plan p{.image_height = 224, .image_width = 224, .text = 64, .markers = false, .new_tokens = 2};
  p.shards = {.ranks = ranks, .experts = experts};
  return p;
}

/// Error::where of estimating it, and what is said.
std::string refusal(const Vlm& vlm, const Plan& plan, Phases phases = Phases::inference) {
  try {
    Estimator()(vlm, plan, device(), phases);
  } catch (const Error& e) {
    return e.where + ": " + e.what_happened;
  }
  return {};
}

std::int64_t collectives(const Graph& g, PhaseKind phase, CollectiveKind kind) {
  std::int64_t n = 0;
  for (const Phase& p : g.phases)
    if (p.kind == phase)
      for (NodeId i = p.first; i < p.last; ++i)
        if (const auto* op = std::get_if<CollectiveOp>(&g.op(g.node(i)))) n += op->kind == kind;
  return n;
}

TEST(DividedLayers, PartsOfAllRanksAreTheWholeModel) {
  for (const std::string name : {"qwen2.5-vl-7b", "glm-4.1v-9b", "llava-phi-3-mini", "internvl3.5-30b-a3b"}) {
    const Vlm vlm = model(name);
    const Estimate one = Estimator()(vlm, small(1), device(), Phases::all);
    for (const int ranks : {2, 4}) {
      if (name == "glm-4.1v-9b" && ranks > 2) continue;  // two key and value heads
      Estimator estimator;
      const Estimate e = estimator(vlm, small(ranks), device(), Phases::all);
      EXPECT_EQ(e.params.total(), one.params.total()) << name << ranks;
      EXPECT_EQ(e.params.active(), one.params.active()) << name << ranks;
      EXPECT_EQ(e.trainable, one.trainable) << name << ranks;
      // Phi-3's keys and values come out of a product whose parts are put together again.
      const int heads = name == "llava-phi-3-mini" ? 1 : ranks;
      EXPECT_EQ(e.inference.kv_cache * heads, one.inference.kv_cache) << name << ranks;
      EXPECT_LT(e.inference.weights, one.inference.weights) << name << ranks;
    }
  }
}

TEST(DividedLayers, ProductsAreDividedAndTheRestIsNot) {
  for (const std::string name : {"qwen2.5-vl-7b", "llava-phi-3-mini", "internvl3.5-30b-a3b"}) {
    const Vlm vlm = model(name);
    const auto flops = [&](int ranks, Phases phases) {
      const Estimate e = Estimator()(vlm, small(ranks), device(), phases);
      return phases == Phases::train ? e.training.work.flops.value() : e.inference.prefill.work.flops.value();
    };
    for (const Phases phases : {Phases::inference, Phases::train}) {
      const std::int64_t one = flops(1, phases), two = flops(2, phases), four = flops(4, phases);
      EXPECT_GT(one, two) << name;
      // a + b / n on n ranks
      EXPECT_EQ(one - two, 2 * (two - four)) << name;
    }
  }
}

TEST(DividedLayers, ALayerSumsTwiceAndItsBackwardForEachDividedProduct) {
  Estimator estimator;
  const Vlm vlm = model("qwen2.5-vl-7b");
  estimator(vlm, small(2), device(), Phases::all);
  const std::int64_t layers = 4;
  for (const PhaseKind phase : {PhaseKind::prefill, PhaseKind::decode})
    EXPECT_EQ(collectives(estimator.graph(), phase, CollectiveKind::all_reduce), 2 * layers) << name(phase);
  EXPECT_EQ(collectives(estimator.training_graph(), PhaseKind::forward, CollectiveKind::all_reduce), 2 * layers);
  EXPECT_EQ(collectives(estimator.training_graph(), PhaseKind::backward, CollectiveKind::all_reduce), 5 * layers)
      << "the inputs of q, k, v, gate and up";
  EXPECT_EQ(collectives(estimator.training_graph(), PhaseKind::step, CollectiveKind::all_reduce), 0);
}

TEST(DividedLayers, WhatIsGatheredIsSplitAgain) {
  Estimator estimator;
  estimator(model("llava-phi-3-mini"), small(2), device(), Phases::all);
  const std::int64_t layers = 4;
  EXPECT_EQ(collectives(estimator.graph(), PhaseKind::prefill, CollectiveKind::all_gather), 2 * layers);
  EXPECT_EQ(collectives(estimator.training_graph(), PhaseKind::backward, CollectiveKind::all_gather), 2 * layers)
      << "gradients of what o_proj and down_proj take a part of";
}

TEST(DividedLayers, CollectivesTakeTheNetworksTime) {
  const Vlm vlm = model("qwen2.5-vl-7b");
  Estimator estimator;
  const Plan plan = small(2);
  Estimate e = estimator(vlm, plan, device(), Phases::all);
  const Network slow{"slow", {{.name = "host", .gpus = 8, .bandwidth = Bandwidth{1e9}, .launch = Seconds{1e-3}}}};
  const Seconds before = e.inference.prefill.gpu;
  const ParallelEstimate p = estimate_divided(estimator, e, plan, device(), Layout{.tp = 2}, slow, Phases::all);
  ASSERT_EQ(p.ranks.size(), 1u);
  EXPECT_EQ(p.ranks[0].ranks, 2);
  EXPECT_EQ(p.ranks[0].prefill, e.inference.prefill.memory.peak);
  EXPECT_EQ(p.ranks[0].backward, e.training.backward.peak);
  std::map<PhaseKind, CommunicationRow> rows;
  for (const CommunicationRow& r : p.communication) rows[r.phase] = r;
  ASSERT_EQ(rows.size(), 4u) << "prefill, decode, forward, backward";
  EXPECT_EQ(rows[PhaseKind::prefill].count, 8);
  const std::int64_t tokens = e.sequences.seq;
  EXPECT_EQ(rows[PhaseKind::prefill].bytes, Bytes(8 * tokens * 3584 * 2));
  EXPECT_EQ(rows[PhaseKind::prefill].exposed, rows[PhaseKind::prefill].time);
  EXPECT_GT(rows[PhaseKind::prefill].time.value, 8e-3) << "eight launches";
  EXPECT_GT(e.inference.prefill.gpu.value, before.value + 7e-3);
}

TEST(DividedLayers, WhatTransformersDoesNotRunIsRefused) {
  const auto of_class = [](const char* type, bool tied = false) {
    Vlm vlm = model("qwen2.5-vl-7b");
    vlm.text.type = type;
    vlm.text.tied = tied;
    return vlm;
  };
  EXPECT_EQ(refusal(of_class("qwen3_vl_text"), small(2)),
            "layout.mesh: transformers 5.17 has no tensor-parallel plan for qwen3_vl_text");
  EXPECT_EQ(refusal(of_class("qwen3_5_text"), small(2)),
            "layout.mesh: tensor parallelism of qwen3_5_text is not modelled");
  EXPECT_EQ(refusal(model("qwen2.5-vl-7b"), small(2, true)),
            "layout.mesh: transformers 5.17 has no expert-parallel plan for qwen2_5_vl_text");
  EXPECT_NE(refusal(of_class("qwen2_5_vl_text", true), small(2)).find("shares the divided embeddings"),
            std::string::npos);
  EXPECT_NE(refusal(model("qwen3-vl-30b-a3b"), small(2, true)).find("does not load the experts"), std::string::npos);
  const std::string heads = refusal(model("qwen2.5-vl-7b"), small(8));
  EXPECT_NE(heads.find("layout.mesh: 8 GPUs do not divide the heads"), std::string::npos) << heads;
  const std::string inner = refusal(model("qwen2.5-vl-7b"), small(3));
  EXPECT_NE(inner.find("layout.mesh: 3 GPUs do not divide"), std::string::npos) << inner;
  Plan fused = small(2), adapters = small(2), stored = small(2);
  fused.runtime = runtime_id("fused");
  adapters.lora.rank = 8;
  stored.weights = DType::int8;
  for (const auto& [plan, phases] :
       {std::pair{fused, Phases::inference}, {adapters, Phases::train}, {stored, Phases::inference}})
    EXPECT_NE(refusal(model("qwen2.5-vl-7b"), plan, phases).find("not modelled"), std::string::npos);
}

struct Errors {
  std::vector<double> all;
  void add(const std::string& of, Bytes estimated, const nlohmann::json& measured) {
    for (const auto& rank : measured) {
      const double m = rank.get<double>();
      all.push_back(std::abs(static_cast<double>(estimated.value()) - m) / m);
      EXPECT_LT(all.back(), 0.005) << of;
    }
  }
  double median() {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

TEST(DividedLayers, PeaksOfRecordedRanks) {
  std::map<bool, Errors> peaks;  // by whether the model was developed on them
  for (const auto& run : recorded().at("runs")) {
    const std::string name = run.at("model");
    const std::string of = name + " " + run.at("plan").get<std::string>() + " " + run.at("mode").get<std::string>();
    Plan plan{.batch = run.at("batch"), .text = run.at("text"), .markers = false, .new_tokens = 8};
    plan.images = run.contains("side") ? 1 : 0;
    if (plan.images > 0) plan.image_height = plan.image_width = run.at("side").get<std::int64_t>();
    if (run.contains("checkpointing")) plan.checkpointing = Checkpointing::full;
    plan.shards = {.ranks = 2, .experts = run.at("plan") == "ep"};
    const bool trains = run.at("mode") == "train";
    const Estimate e = Estimator()(model(name), plan, device(), trains ? Phases::train : Phases::inference);
    ASSERT_EQ(e.sequences.seq, run.at("seq").get<std::int64_t>()) << of;
    Errors& errors = peaks[run.at("seen").get<bool>()];
    if (trains) {
      errors.add(of + " forward", e.training.forward.peak, run.at("forward"));
      errors.add(of + " backward", e.training.backward.peak, run.at("backward"));
      errors.add(of + " step", e.training.step.peak, run.at("step"));
    } else {
      EXPECT_EQ(e.inference.kv_cache, Bytes(run.at("kv").get<std::int64_t>())) << of;
      errors.add(of + " weights", e.inference.weights, run.at("weights"));
      errors.add(of + " prefill", e.inference.prefill.memory.peak, run.at("prefill"));
      errors.add(of + " decode", e.inference.decode.memory.peak, run.at("decode"));
    }
  }
  for (auto& [seen, errors] : peaks) EXPECT_LT(errors.median(), 0.001) << (seen ? "seen" : "held out");
}

}  // namespace
}  // namespace vlmest::parallel::divided_layers_test
