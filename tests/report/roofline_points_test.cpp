// SPDX-License-Identifier: Apache-2.0
// Ops as points: nothing is lost in the groups, and every point is where its numbers say.
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/roofline_ceilings.hpp>

namespace vlmest::roofline_points_test {
namespace {

const std::string models = VLMEST_SOURCE_DIR "/models/";

Device device(const std::string& name) { return load_device(models + "device/" + name + ".json"); }
Vlm model(const std::string& name) {
  std::ifstream file(models + "vlm/" + name + ".json");
  return json::parse_model(std::string(std::istreambuf_iterator<char>(file), {}), name);
}

struct Placed {
  Estimator estimator;
  Estimate estimate;
  Device on = device("h200-sxm");

  explicit Placed(const std::string& name, const Plan& plan = {}, bool training = false) {
    if (training)
      estimator.train(estimate, model(name), plan, on);
    else
      estimator.infer(estimate, model(name), plan, on);
  }
  RooflinePoints phase(std::size_t i) const {
    const Phase& p = estimator.graph().phases[i];
    const Repeated all{p.first, p.last};
    return place_on_roofline(estimator.graph(), {&all, 1}, on);
  }
};

std::int64_t executions(const RooflinePoints& r) {
  std::int64_t n = r.idle;
  for (const auto& p : r.points) n += p.count;
  return n;
}
Seconds time_of(const RooflinePoints& r) {
  Seconds t{};
  for (const auto& p : r.points) t += p.time();
  return t;
}
/// What executions that launch nothing read: the results that the host waits for.
Bytes idle_bytes(const Graph& g, std::span<const Repeated> stretches) {
  Bytes b{};
  for (const Repeated& s : stretches)
    for (NodeId n = s.first; n < s.last; ++n)
      if (const Cost c = cost(g.op(g.node(n))); c.kernels == 0) b += (c.read + c.written) * s.times;
  return b;
}
void expect_same(const RooflinePoints& r, const Work& w, Bytes idle) {
  EXPECT_NEAR(time_of(r).value, w.time.value, 1e-9 * w.time.value);
  EXPECT_NEAR(r.total.compute_bound.value, w.compute_bound.value, 1e-9 * w.time.value);
  EXPECT_EQ(r.total.flops, w.flops);
  EXPECT_EQ(r.total.read + r.total.written + idle, w.read + w.written);
  EXPECT_EQ(r.total.kernels, w.kernels);
}

TEST(RooflinePoints, AddUpToThePhase) {
  for (const std::string name : {"smolvlm-256m", "qwen2.5-vl-3b", "llava-next-7b"}) {
    const Placed at(name);
    for (std::size_t i = 0; i < 2; ++i) {
      const RooflinePoints r = at.phase(i);
      const Phase& p = at.estimator.graph().phases[i];
      EXPECT_EQ(executions(r), p.last - p.first) << name << " " << vlmest::name(p.kind);
      const Repeated all{p.first, p.last};
      expect_same(r, (i == 0 ? at.estimate.inference.prefill : at.estimate.inference.decode).work,
                  idle_bytes(at.estimator.graph(), {&all, 1}));
    }
  }
}

TEST(RooflinePoints, AddUpToATrainingStepOfManyMicroBatches) {
  for (const int micro : {1, 2, 5}) {
    const Placed at("smolvlm-256m", {.gradient_accumulation = micro}, true);
    const auto stretches = vlmest::stretches(at.estimator.training_graph(), micro);
    const RooflinePoints r = place_on_roofline(at.estimator.training_graph(), stretches, at.on);
    expect_same(r, at.estimate.training.work, idle_bytes(at.estimator.training_graph(), stretches));
    std::int64_t nodes = 0;
    for (const auto& s : stretches) nodes += (s.last - s.first) * s.times;
    EXPECT_EQ(executions(r), nodes) << micro;
  }
}

TEST(RooflinePoints, EqualOpsOfEqualLayersAreOne) {
  const Placed at("llava-next-7b");
  const RooflinePoints r = at.phase(0);
  int found = 0;
  for (const auto& p : r.points)
    if (p.scope == "model.language_model.layers.*.mlp.gate_proj") {
      ++found;
      EXPECT_EQ(p.count, 32);
      EXPECT_EQ(p.shape, "m " + std::to_string(at.estimate.sequences.seq) + " n 11008 k 4096");
    }
  EXPECT_EQ(found, 1);
  EXPECT_LT(r.points.size(), 200u);
  // Numbers that do not differ stay, and no two points say the same.
  std::set<std::tuple<std::string, std::string, std::string, double, DType>> seen;
  bool numbered = false;
  for (const auto& p : r.points) {
    numbered = numbered || p.scope.find_first_of("0123456789") != std::string::npos;
    EXPECT_TRUE(seen.emplace(p.scope, p.name, p.shape, p.each.time.value, p.dtype).second) << p.scope << " " << p.name;
  }
  EXPECT_TRUE(numbered);
}

TEST(RooflinePoints, LongestFirstAndAtTheirPlaces) {
  const Placed at("qwen2.5-vl-3b");
  const RooflinePoints r = at.phase(0);
  const RooflineCeilings c = ceilings(at.on, r.points);
  for (std::size_t i = 0; i < r.points.size(); ++i) {
    const RooflinePoint& p = r.points[i];
    EXPECT_TRUE(i == 0 || p.time() <= r.points[i - 1].time());
    EXPECT_GT(p.count, 0);
    // What the L2 cache cannot hold comes at the DRAM's bandwidth at best.
    if (p.moved() > at.on.l2 * 4) {
      EXPECT_LE(p.bandwidth().value, c.dram().value * (1 + 1e-12)) << p.scope << " " << p.name;
    }
    if (p.performed == Flops{}) continue;
    EXPECT_NEAR(p.intensity() * static_cast<double>(p.moved().value()), static_cast<double>(p.performed.value()), 1);
    EXPECT_LE(p.flop_rate().value, peak(at.on, p.engine_dtype, p.engine == Engine::tensor_core).value * (1 + 1e-12));
  }
}

TEST(RooflineCeilings, AreThoseOfTheUnitsInUse) {
  const Placed at("qwen2.5-vl-3b");
  const auto points = at.phase(0).points;
  const RooflineCeilings c = ceilings(at.on, points);
  ASSERT_EQ(c.bandwidth.size(), 3u);
  EXPECT_EQ(c.dram(), at.on.dram);
  EXPECT_TRUE(c.bandwidth[1].measured);
  EXPECT_EQ(c.bandwidth[2].rate, at.on.measured.l2);
  ASSERT_GE(c.compute.size(), 2u);
  EXPECT_EQ(c.compute[0].name, "bf16 tensor cores");
  EXPECT_EQ(c.compute[0].rate, at.on.peaks.bf16);
  EXPECT_NEAR(ridge(c.dram(), c.compute[0].rate), ridge(at.on, DType::bf16), 1e-9);
  // A device without bf16 units runs the same products outside of the tensor cores.
  const Device t4 = device("t4");
  const RooflineCeilings old = ceilings(t4, points);
  ASSERT_EQ(old.compute.size(), 1u);
  EXPECT_EQ(old.compute[0].name, "fp32 units");
  EXPECT_EQ(old.compute[0].rate, t4.peaks.fp32);
}

TEST(SameOp, ComparesSizesAndTypes) {
  const Matmul m{.m = 4, .n = 5, .k = 6};
  Matmul biased = m, wider = m, other = m;
  biased.bias = true;
  wider.n = 8;
  other.dtype = DType::fp16;
  EXPECT_TRUE(same_op(m, biased));
  EXPECT_FALSE(same_op(m, wider));
  EXPECT_FALSE(same_op(m, other));
  EXPECT_FALSE(same_op(m, Softmax{}));
  const Attention a{.heads = 8, .kv_heads = 2, .q_len = 3, .kv_len = 7};
  Attention causal = a, efficient = a;
  causal.causal = true;
  efficient.backend = AttentionBackend::efficient;
  EXPECT_FALSE(same_op(a, causal));
  EXPECT_TRUE(same_op(a, efficient));
  EXPECT_FALSE(same_op(MemoryOp{.read = Bytes(8)}, MemoryOp{.read = Bytes(16)}));
  EXPECT_FALSE(same_op(View{}, View{}));
}

}  // namespace
}  // namespace vlmest::roofline_points_test
