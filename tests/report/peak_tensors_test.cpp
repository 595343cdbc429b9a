// SPDX-License-Identifier: Apache-2.0
// The tensors of a peak make the peak, whatever is run: random small models of every family, random plans and freezes.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include <vlmest/analysis/peak.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/memory_curve.hpp>
#include <vlmest/report/tensor_groups.hpp>

#include "../conformance/recorded_model.hpp"
#include "../sanitizer.hpp"

namespace vlmest::peak_tensors_test {
namespace {

const Device& h200() {
  static const Device d = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  return d;
}

/// A published config with its stacks cut to a few layers and its dimensions in the language model's MLP changed.
Vlm random_model(std::mt19937& random) {
  static constexpr std::array names{"llava-1.5-7b",   "llava-next-vicuna-7b", "llava-onevision-qwen2-0.5b",
                                    "qwen2-vl-2b",    "qwen2.5-vl-3b",        "qwen3-vl-4b",
                                    "internvl3-2b",   "paligemma-3b-224",     "gemma-3-4b",
                                    "smolvlm-2.2b",   "aya-vision-8b",        "glm-4.1v-9b",
                                    "blip2-opt-2.7b", "pixtral-12b",          "llama-3.2-11b-vision"};
  const std::string name = names[random() % names.size()];
  nlohmann::json d =
      conformance::cut_layers(conformance::read_json(VLMEST_SOURCE_DIR "/tests/data/configs/" + name + ".json"),
                              1 + static_cast<int>(random() % 3));
  nlohmann::json& text = d.contains("text_config") ? d["text_config"] : d;
  if (text.contains("intermediate_size")) text["intermediate_size"] = 64 * (1 + random() % 40);
  if (text.contains("vocab_size"))
    text["vocab_size"] = text["vocab_size"].get<int>() + static_cast<int>(random() % 999);
  Vlm v = json::read_model(d, name);
  v.name = name;
  return v;
}

Plan random_plan(std::mt19937& random) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Plan p;
  p.batch = 1 + random() % 3;
  p.text = 1 + random() % 300;
  p.new_tokens = 1 + random() % 50;
  p.dtype = one_in(4) ? DType::fp32 : DType::bf16;
  p.attention = one_in(3) ? AttentionKind::eager : AttentionKind::sdpa;
  p.logits = one_in(2) ? Logits::all : Logits::last;
  p.optimizer = static_cast<Optimizer>(random() % 6);
  p.checkpointing = static_cast<Checkpointing>(random() % 3);
  p.gradient_accumulation = one_in(3) ? 1 + static_cast<std::int64_t>(random() % 4) : 1;
  p.amp = one_in(5);
  p.trainable = {.vision = !one_in(3), .projector = !one_in(3), .language = !one_in(4)};
  if (one_in(3)) {
    p.lora.rank = 1 + random() % 32;
    p.lora.dropout = one_in(2);
    p.lora.vision = one_in(3);
  }
  if (!p.amp && one_in(3)) p.vision_chunk = 1 + static_cast<std::int64_t>(random() % 2);
  return p;
}

/// What a list of tensors must be, whoever made it.
void check_peak(const Graph& g, const Timeline& timeline, const std::vector<LiveTensor>& tensors, Bytes peak) {
  Bytes sum{}, grouped_sum{};
  std::set<TensorId> seen;
  for (const auto& t : tensors) {
    sum += t.bytes;
    if (t.tensor == none) continue;
    EXPECT_TRUE(seen.insert(t.tensor).second) << "twice: " << describe(g, t).name;
    EXPECT_EQ(g.tensor(t.tensor).alias_of, none);
    EXPECT_GE(t.bytes, requested_bytes(g.tensor(t.tensor)));
  }
  EXPECT_EQ(sum, peak);
  std::size_t count = 0;
  for (const auto& x : grouped(g, tensors)) {
    grouped_sum += x.bytes;
    count += x.count;
  }
  EXPECT_EQ(grouped_sum, peak);
  EXPECT_EQ(count, tensors.size());
  EXPECT_FALSE(timeline.storages().empty());
}

/// The parts of a peak are its tensors by role.
void check_parts(const Graph& g, const std::vector<LiveTensor>& tensors, const PeakParts& p, Bytes peak) {
  EXPECT_EQ(p.sum(), peak);
  std::array<Bytes, roles> held{};
  Bytes scratch{};
  for (const auto& t : tensors)
    if (t.tensor != none)
      held[static_cast<std::size_t>(g.tensor(t.tensor).role)] += t.bytes;
    else if (t.node != none)
      scratch += t.bytes;
  const auto of = [&](Role r) { return held[static_cast<std::size_t>(r)]; };
  EXPECT_EQ(p.weights, of(Role::weight) + of(Role::buffer));
  EXPECT_EQ(p.kv_cache, of(Role::kv_cache));
  EXPECT_EQ(p.gradients, of(Role::gradient));
  EXPECT_EQ(p.optimizer, of(Role::optimizer_state));
  EXPECT_EQ(p.activations + p.saved, of(Role::activation) + scratch);
  EXPECT_GE(p.other, of(Role::input));
}

/// Roles add up at every node, and the highest node is the phase's peak.
void check_curve(const MemoryCurve& c, std::initializer_list<Bytes> peaks) {
  for (const auto& s : c.samples) {
    Bytes sum{};
    for (const Bytes b : s.by_role) sum += b;
    ASSERT_EQ(sum, s.allocated) << "node " << s.node;
    ASSERT_LE(s.allocated, s.reserved);
  }
  ASSERT_GE(c.phases.size(), peaks.size());
  auto p = c.phases.end() - static_cast<std::ptrdiff_t>(peaks.size());
  for (const Bytes b : peaks) EXPECT_EQ((p++)->peak, b);
}

TEST(PeakTensors, AddUpForRandomModelsPlansAndFreezes) {
  std::mt19937 random(20261120);
  Estimator estimate;
  constexpr int models = 120 / static_cast<int>(one_in(4));
  int trained = 0, refused = 0;
  for (int i = 0; i < models; ++i) {
    const Vlm vlm = random_model(random);
    const Plan plan = random_plan(random);
    SCOPED_TRACE(std::to_string(i) + " " + vlm.name + " batch " + std::to_string(plan.batch) + " optimizer " +
                 std::to_string(static_cast<int>(plan.optimizer)) + " checkpointing " +
                 std::to_string(static_cast<int>(plan.checkpointing)) + " rank " + std::to_string(plan.lora.rank) +
                 (plan.amp ? " amp" : "") + (plan.attention == AttentionKind::eager ? " eager" : "") + " frozen " +
                 std::to_string(plan.trainable.vision) + std::to_string(plan.trainable.projector) +
                 std::to_string(plan.trainable.language) + " accumulation " +
                 std::to_string(plan.gradient_accumulation));
    Estimate e;
    estimate.infer(e, vlm, plan, h200());
    check_peak(estimate.graph(), estimate.timeline(), e.inference.tensors, e.inference.peak);
    const PhaseEstimate& top = e.inference.decode_is_peak ? e.inference.decode : e.inference.prefill;
    check_parts(estimate.graph(), e.inference.tensors, top.parts, e.inference.peak);
    for (const PhaseEstimate* p : {&e.inference.prefill, &e.inference.decode}) {
      EXPECT_EQ(p->parts.sum(), p->memory.peak);
      EXPECT_GE(p->parts.other, Bytes{});
      EXPECT_EQ(p->parts.saved + p->parts.gradients + p->parts.optimizer, Bytes{});
    }
    check_curve(memory_curve(estimate.graph(), estimate.timeline(), h200()),
                {e.inference.prefill.memory.peak, e.inference.decode.memory.peak});
    try {
      estimate.train(e, vlm, plan, h200(), true);
    } catch (const Error& why) {
      // Nothing that the loss reaches is trained, or adapters find no module.
      EXPECT_TRUE(why.where == "training" || why.where == "plan.lora.targets")
          << why.where << ": " << why.what_happened;
      ++refused;
      continue;
    }
    ++trained;
    const TrainingEstimate& t = e.training;
    check_peak(estimate.training_graph(), estimate.training_timeline(), t.tensors, t.peak);
    check_parts(estimate.training_graph(), t.tensors, t.parts, t.peak);
    check_curve(memory_curve(estimate.training_graph(), estimate.training_timeline(), h200()),
                {t.forward.peak, t.backward.peak, t.step.peak});
    EXPECT_EQ(t.peak, std::max({t.forward.peak, t.backward.peak, t.step.peak}));
    EXPECT_LE(t.peak, t.reserved);
    EXPECT_EQ(t.forward.after, t.backward.before);
    EXPECT_EQ(t.backward.after, t.step.before);
    Bytes saved{};
    for (const auto& row : e.layers) saved += row.saved;
    EXPECT_EQ(saved, t.saved_activations);
    EXPECT_LE(t.saved_activations, t.forward_end);
  }
  EXPECT_GE(trained, under_address_sanitizer ? models / 2 : 90);
  EXPECT_EQ(trained + refused, models);
}

/// The requested bytes of the largest node, counted from the tensors alone, are less than the peak, by no more than the
/// allocator's rounding and what the libraries hold.
TEST(PeakTensors, AgreeWithACountOfTheGraph) {
  std::mt19937 random(7);
  Estimator estimate;
  for (int i = 0; i < 10; ++i) {
    const Vlm vlm = random_model(random);
    Plan plan;
    plan.text = 1 + random() % 300;
    const Estimate e = estimate(vlm, plan, h200(), Phases::train);
    const Graph& g = estimate.training_graph();
    Bytes most{}, states{};
    for (const auto& t : g.tensors)
      if (t.role == Role::optimizer_state) states += requested_bytes(t);
    for (const Phase& p : g.phases)
      for (NodeId n = p.first; n < p.last; ++n) {
        Bytes live = states;
        for (const TensorId t : live_at(g, n))
          if (g.tensor(t).role != Role::optimizer_state) live += requested_bytes(g.tensor(t));
        most = std::max(most, live);
      }
    EXPECT_LE(most, e.training.peak) << vlm.name;
    EXPECT_GE(most.value(), 0.9 * static_cast<double>(e.training.peak.value()) - 200e6) << vlm.name;
  }
}

}  // namespace
}  // namespace vlmest::peak_tensors_test
