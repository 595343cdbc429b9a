// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/transform/optimizer.hpp>

namespace vlmest::optimizer_test {
namespace {

/// Bytes of an optimizer's states for one parameter, counted once more (make_states says what they are).
Bytes optimizer_bytes(Optimizer o, const Tensor& p, bool embedding) {
  const Elements n = p.storage;
  const Bytes own = size_of(n, p.dtype);
  switch (o) {
    case Optimizer::adamw: return own * 2;
    case Optimizer::adamw_fused: return own * 2 + size_of(Elements(1), DType::fp32);
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_bnb_8bit:
      if (keeps_fp32_moments(o, n.value(), embedding)) return size_of(n, DType::fp32) * 2;
      return (size_of(n, DType::uint8) + size_of(Elements((n.value() + 255) / 256), DType::fp32)) * 2;
    case Optimizer::sgd: return Bytes{};
    case Optimizer::sgd_momentum: return own;
    case Optimizer::adafactor: {
      const Elements rms{1};
      if (p.shape.rank() < 2) return size_of(n + rms, DType::fp32);
      const Elements rows{n.value() / p.shape[-1]}, columns{n.value() / p.shape[-2]};
      return size_of(rows + columns + rms, DType::fp32);
    }
  }
  return Bytes{};
}

struct Step {
  Builder b;
  std::vector<TrainedParameter> parameters;
  ParameterGradients gradients;
};

/// One step over parameters of these shapes, with gradients of the same type.
void build(Step& s, Optimizer o, DType t, std::initializer_list<Shape> shapes) {
  for (const Shape& shape : shapes) s.parameters.push_back({s.b.persistent("weight", Role::weight, t, shape), {}});
  for (auto& p : s.parameters) {
    const Shape shape = s.b.graph.tensor(p.weight).shape;
    s.gradients.of(p.weight) = s.b.existing("gradient", Role::gradient, t, shape);
    p.states = make_states(s.b, o, p.weight);
  }
  s.b.begin_phase(PhaseKind::step);
  optimizer_step(s.b, o, s.parameters, s.gradients);
  s.b.end_phase();
}

std::vector<std::string> names(const Step& s) {
  std::vector<std::string> r;
  for (const Node& n : s.b.graph.nodes) r.emplace_back(n.name);
  return r;
}

/// Bytes of what is alive at the end of the step in a role.
Bytes alive(const Step& s, Role role) {
  Bytes r{};
  for (const Tensor& t : s.b.graph.tensors)
    if (t.role == role && t.alias_of == none && t.dies == none) r += requested_bytes(t);
  return r;
}

const auto every = {Optimizer::adamw, Optimizer::adamw_fused,  Optimizer::adamw_8bit, Optimizer::adamw_bnb_8bit,
                    Optimizer::sgd,   Optimizer::sgd_momentum, Optimizer::adafactor};

TEST(Optimizer, KeepsTheStatesThatTheBreakdownCounts) {
  for (const Optimizer o : every)
    for (const DType t : {DType::bf16, DType::fp32}) {
      Step s;
      build(s, o, t, {{64, 100}, {4095}, {3, 4, 5, 6}, {1}});
      Bytes expected{};
      for (const auto& p : s.parameters) expected += optimizer_bytes(o, s.b.graph.tensor(p.weight), false);
      EXPECT_EQ(alive(s, Role::optimizer_state), expected) << static_cast<int>(o);
    }
}

TEST(Optimizer, LeavesNothingElseBehind) {
  for (const Optimizer o : every) {
    Step s;
    build(s, o, DType::bf16, {{64, 100}, {10}});
    EXPECT_EQ(alive(s, Role::activation), Bytes{}) << static_cast<int>(o);
  }
}

/// Parameters of two types are two groups, the one found last first; the first one's roots go when the second's are
/// there.
TEST(Optimizer, StepsOneElementTypeAfterTheOther) {
  Step s;
  const auto add = [&](DType t, const Shape& shape) {
    s.parameters.push_back({s.b.persistent("weight", Role::weight, t, shape), {}});
  };
  add(DType::fp32, {6});
  add(DType::fp16, {10});
  add(DType::fp32, {3});
  for (auto& p : s.parameters) {
    const Tensor w = s.b.graph.tensor(p.weight);
    s.gradients.of(p.weight) = s.b.existing("gradient", Role::gradient, w.dtype, w.shape);
    p.states = make_states(s.b, Optimizer::adamw, p.weight);
  }
  s.b.begin_phase(PhaseKind::step);
  optimizer_step(s.b, Optimizer::adamw, s.parameters, s.gradients);
  s.b.end_phase();
  std::vector<NodeId> roots;
  for (NodeId n = 0; n < s.b.now(); ++n)
    if (std::string_view(s.b.graph.node(n).name) == "_foreach_sqrt") roots.push_back(n);
  ASSERT_EQ(roots.size(), 2u);
  const auto made = [&](NodeId n) { return s.b.graph.outputs(s.b.graph.node(n)); };
  ASSERT_EQ(made(roots[0]).size(), 1u);
  ASSERT_EQ(made(roots[1]).size(), 2u);
  const Tensor &half = s.b.graph.tensor(made(roots[0])[0]), &single = s.b.graph.tensor(made(roots[1])[0]);
  EXPECT_EQ(half.dtype, DType::fp16);
  EXPECT_EQ(single.dtype, DType::fp32);
  EXPECT_EQ(half.dies, roots[1] + 1);
}

TEST(Optimizer, AdamWHoldsTheRootsOfAllSecondMomentsTogether) {
  Step s;
  build(s, Optimizer::adamw, DType::bf16, {{64, 100}, {10}});
  EXPECT_EQ(names(s), (std::vector<std::string>{"_foreach_mul_.Scalar", "_foreach_lerp_.Scalar", "_foreach_mul_.Scalar",
                                                "_foreach_addcmul_.Scalar", "_foreach_sqrt", "_foreach_div_.ScalarList",
                                                "_foreach_add_.Scalar", "_foreach_addcdiv_.ScalarList"}));
  Bytes roots{};
  for (const Tensor& t : s.b.graph.tensors)
    if (t.role == Role::activation && t.born == 4 && t.dies == 8) roots += requested_bytes(t);
  EXPECT_EQ(roots, Bytes((6400 + 10) * 2));
}

TEST(Optimizer, SgdReadsParametersAndGradients) {
  Step plain, momentum;
  build(plain, Optimizer::sgd, DType::bf16, {{64, 100}});
  build(momentum, Optimizer::sgd_momentum, DType::bf16, {{64, 100}});
  EXPECT_EQ(names(plain), (std::vector<std::string>{"_foreach_add_.List"}));
  EXPECT_EQ(names(momentum),
            (std::vector<std::string>{"_foreach_mul_.Scalar", "_foreach_add_.List", "_foreach_add_.List"}));
  const Cost c = cost(plain.b.graph.ops.front());
  EXPECT_EQ(c.read, Bytes(6400 * 2 * 2));
  EXPECT_EQ(c.written, Bytes(6400 * 2));
}

TEST(Optimizer, EightBitsFromFourThousandElements) {
  Step s;
  build(s, Optimizer::adamw_8bit, DType::bf16, {{4096}, {4095}});
  EXPECT_EQ(names(s), (std::vector<std::string>{"optimizer_update_8bit_blockwise", "synchronize",
                                                "optimizer_update_32bit", "synchronize"}));
}

TEST(Optimizer, TrainerKeepsMomentsOfEmbeddingsInFp32) {
  Step s;
  s.b.graph.embeddings = {0};  // the first parameter
  build(s, Optimizer::adamw_bnb_8bit, DType::bf16, {{64, 100}, {64, 100}});
  EXPECT_EQ(names(s), (std::vector<std::string>{"optimizer_update_32bit", "synchronize",
                                                "optimizer_update_8bit_blockwise", "synchronize"}));
  const auto bytes = [&](std::size_t i, bool embedding) {
    return optimizer_bytes(Optimizer::adamw_bnb_8bit, s.b.graph.tensor(s.parameters[i].weight), embedding);
  };
  EXPECT_EQ(bytes(0, true), Bytes(6400 * 8));
  EXPECT_EQ(bytes(1, false), Bytes(6400 * 2 + 25 * 8));
  EXPECT_EQ(alive(s, Role::optimizer_state), bytes(0, true) + bytes(1, false));
}

TEST(Optimizer, AdafactorCastsOneParameterAtATime) {
  Step half, full;
  build(half, Optimizer::adafactor, DType::bf16, {{64, 100}, {10}});
  build(full, Optimizer::adafactor, DType::fp32, {{64, 100}, {10}});
  EXPECT_EQ(half.b.graph.nodes.size(), full.b.graph.nodes.size() + 2 * 3);  // two casts and a copy back each
  EXPECT_STREQ(full.b.graph.nodes.front().name, "linalg_vector_norm");
}

TEST(ForeachKernels, TakeSoManyTensorsAndPieces) {
  const std::vector<Elements> small(111, Elements(1));
  EXPECT_EQ(foreach_kernels(small, 1), 2);        // 110 tensors in one
  EXPECT_EQ(foreach_kernels(small, 1, true), 2);  // 96
  EXPECT_EQ(foreach_kernels(small, 4), 4);        // 36
  const std::vector<Elements> large{Elements(65536 * 320 + 1)};
  EXPECT_EQ(foreach_kernels(large, 1), 2);
  const std::vector<Elements> exact{Elements(65536 * 320), Elements(0)};
  EXPECT_EQ(foreach_kernels(exact, 1), 1);
  EXPECT_EQ(foreach_kernels({}, 1), 0);
}

}  // namespace
}  // namespace vlmest::optimizer_test
