// SPDX-License-Identifier: Apache-2.0
// Kernels of the fused profile: what they keep, and what their backward writes over.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/graph/engine.hpp>

namespace vlmest::fused_test {
namespace {

/// A call on results of matrix products, so that nothing but the call holds them.
struct Fixture {
  Builder b;
  TensorId weight = none;
  NodeId boundary = 0;

  Fixture() {
    weight = b.persistent("w", Role::weight, DType::bf16, {64, 64});
    b.require_grad(weight);
    b.enable_grad(true);
    b.begin_phase(PhaseKind::forward);
  }
  Value states(std::int64_t rows) {
    const Value x = b.existing("x", Role::input, DType::bf16, {rows, 64});
    return eager::mm(x, Value(b, weight));
  }
  TensorId parameter(const Shape& s) {
    const TensorId t = b.persistent("p", Role::weight, DType::bf16, s);
    b.require_grad(t);
    return t;
  }
  void backward(Value y) {
    b.end_phase();
    b.begin_phase(PhaseKind::backward);
    boundary = b.now();
    Value seed = eager::fill(b, "ones_like", y.shape(), y.dtype());
    BackwardEngine engine;
    engine.run(y, std::move(seed));
    b.end_phase();
  }
  /// Storages made in the forward that live on to the backward.
  std::vector<Shape> kept() const {
    std::vector<Shape> r;
    for (const Tensor& t : b.graph.tensors)
      if (t.role == Role::activation && t.alias_of == none && t.born < boundary &&
          (t.dies == none || t.dies > boundary))
        r.push_back(t.shape);
    return r;
  }
  const Node& node(std::string_view name) const {
    for (const Node& n : b.graph.nodes)
      if (name == n.name) return n;
    throw Error("test", "no node " + std::string(name));
  }
  /// Bytes of the results that a node allocates.
  Bytes made(std::string_view name) const {
    const Node& n = node(name);
    Bytes r{};
    for (TensorId t : b.graph.outputs(n))
      if (b.graph.owner(t) == t && b.graph.tensor(t).born == static_cast<NodeId>(&n - b.graph.nodes.data()))
        r += requested_bytes(b.graph.tensor(t));
    return r;
  }
};

TEST(Fused, NormKeepsItsInputAndOneNumberPerRow) {
  Fixture f;
  const TensorId gain = f.parameter({64});
  f.backward(eager::fused_norm(Norm::Kind::rms_norm, f.states(100), Value(f.b, gain)));
  EXPECT_EQ(f.kept(), (std::vector<Shape>{{100, 64}, {100, 64}, {100}}));  // the second is the root
  // The gradient of x goes over the incoming one; a partial sum of the weight's for each multiprocessor.
  EXPECT_EQ(f.made("rms_norm_backward"), Bytes(132 * 64 * 4));
  EXPECT_EQ(f.b.graph.tensor(f.b.gradients.of(gain).id()).dtype, DType::bf16);
}

TEST(Fused, NormLeavesAGradientThatAResidualStillNeeds) {
  Fixture f;
  const TensorId gain = f.parameter({64});
  const Value x = f.states(100);
  Value y = eager::fused_norm(Norm::Kind::rms_norm, x, Value(f.b, gain));
  f.backward(eager::add(std::move(y), x));
  EXPECT_EQ(f.made("rms_norm_backward"), Bytes(132 * 64 * 4 + 100 * 64 * 2));
}

TEST(Fused, GateWritesGradientsOverWhatItKept) {
  Fixture f;
  Value gate = f.states(50);
  Value up = f.states(50);
  f.backward(eager::fused_gate(std::move(gate), std::move(up)));
  EXPECT_EQ(f.kept(), (std::vector<Shape>{{50, 64}, {50, 64}, {50, 64}}));
  EXPECT_EQ(f.made("act_mul_backward"), Bytes(0));
}

TEST(Fused, GateOfHalvesKeepsThemAsOne) {
  Fixture f;
  f.backward(eager::fused_gate(f.states(50)));
  EXPECT_EQ(f.kept(), (std::vector<Shape>{{50, 64}, {50, 32}}));
  EXPECT_EQ(f.made("act_mul_backward"), Bytes(50 * 64 * 2));
}

TEST(Fused, RotationKeepsAnglesAlone) {
  Fixture f;
  const Value cos = f.b.existing("cos", Role::input, DType::bf16, {1, 10, 16});
  const Value sin = f.b.existing("sin", Role::input, DType::bf16, {1, 10, 16});
  const auto heads = [&] { return eager::transpose(eager::view(f.states(10), {1, 10, 4, 16}), 1, 2); };
  Value q = heads();
  Value k = heads();
  eager::fused_rotate(q, k, cos, sin);
  Value y = eager::add(std::move(q), std::move(k));
  f.backward(std::move(y));
  EXPECT_EQ(f.kept(), (std::vector<Shape>{{1, 4, 10, 16}}));
  // Both gradients are the same tensor: neither may be turned in place.
  EXPECT_EQ(f.made("rope_backward"), Bytes(2 * 10 * 64 * 2));
}

TEST(Fused, ScaleSumsItsVectorsGradient) {
  Fixture f;
  const TensorId scale = f.parameter({64});
  const Value x = f.states(20);
  f.backward(eager::fused_scale("scale_add", true, x, f.states(20), Value(f.b, scale)));
  EXPECT_EQ(f.made("scale_backward"), Bytes(20 * 64 * 2 + 132 * 64 * 4));
}

TEST(Fused, ExpertsKeepNeitherGatheredRowsNorActivations) {
  Fixture f;
  const TensorId gate_up = f.parameter({8, 2 * 32, 64}), down = f.parameter({8, 64, 32}), router = f.parameter({8, 64});
  const Value x = f.states(30);
  Value logits = eager::mm(x, eager::transpose(Value(f.b, router), 0, 1));
  {
    const eager::FusedRoute route = eager::fused_route(std::move(logits), 2);
    Value y = eager::fused_experts(x, Value(f.b, gate_up), Value(f.b, down), route, 8);
    f.backward(std::move(y));
  }
  // x, shares, order and offsets (held by the route here), gate and up of every row, the result.
  EXPECT_EQ(f.kept(), (std::vector<Shape>{{30, 64}, {30, 2}, {60}, {8}, {60, 64}, {30, 64}}));
  EXPECT_EQ(f.b.graph.tensor(f.b.gradients.of(gate_up).id()).shape, (Shape{8, 64, 64}));
  EXPECT_EQ(f.b.graph.tensor(f.b.gradients.of(down).id()).shape, (Shape{8, 64, 32}));
  EXPECT_TRUE(f.b.gradients.has(router));
}

}  // namespace
}  // namespace vlmest::fused_test
