// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/engine.hpp>
#include <vlmest/nn/linear_function.hpp>

namespace vlmest::autocast_test {
namespace {

using namespace eager;
constexpr DType bf16 = DType::bf16, fp32 = DType::fp32;

class UnderAutocast : public testing::Test {
 protected:
  Value activation(const Shape& s, DType t = fp32) { return b.existing("x", Role::input, t, s); }
  TensorId weight(const Shape& s, bool trained = true) {
    const TensorId w = b.persistent("weight", Role::weight, fp32, s);
    if (trained) b.require_grad(w);
    return w;
  }
  int casts() const {
    return static_cast<int>(std::count_if(b.graph.nodes.begin(), b.graph.nodes.end(),
                                          [](const Node& n) { return std::string_view(n.name) == "_to_copy"; }));
  }
  Builder b;
  std::optional<Autocast> on{std::in_place, b, bf16};
};

TEST_F(UnderAutocast, ProductsRunInTheLowerType) {
  const Value x = activation({4, 8}), stack = activation({2, 4, 8});
  EXPECT_EQ(mm(x, transpose(x, 0, 1)).dtype(), bf16);
  EXPECT_EQ(bmm(stack, transpose(stack, 1, 2)).dtype(), bf16);
  EXPECT_EQ(matmul(stack, transpose(stack, 1, 2)).dtype(), bf16);
  EXPECT_EQ(linear(x, activation({16, 8}), activation({16})).dtype(), bf16);
  EXPECT_EQ(conv2d(activation({1, 3, 8, 8}), activation({5, 3, 4, 4}), {}, 4).dtype(), bf16);
  const Value q = activation({1, 2, 8, 64});
  EXPECT_EQ(scaled_dot_product_attention(q, q, q, {}, false).dtype(), bf16);
  for (const Node& n : b.graph.nodes) {
    const auto* m = std::get_if<Matmul>(&b.graph.op(n));
    const auto* a = std::get_if<Attention>(&b.graph.op(n));
    EXPECT_EQ(m ? m->dtype : a ? a->dtype : bf16, bf16);
  }
}

TEST_F(UnderAutocast, NumericallyDelicateOpsRunInFp32) {
  const Value x = activation({2, 3, 4, 8}, bf16);
  EXPECT_EQ(rsqrt(x).dtype(), fp32);
  EXPECT_EQ(pow_scalar(x).dtype(), fp32);
  EXPECT_EQ(layer_norm(x, activation({8}), activation({8})).dtype(), fp32);
  EXPECT_EQ(upsample_bilinear2d(x, 8, 8).dtype(), fp32);
  EXPECT_EQ(sum(x, -1, false).dtype(), fp32);
  EXPECT_EQ(softmax(x).dtype(), fp32);
  EXPECT_EQ(softmax(x, bf16).dtype(), bf16) << "the caller named the type";
}

TEST_F(UnderAutocast, OtherOpsPromote) {
  const Value narrow = activation({2, 8}, bf16), wide = activation({2, 8});
  EXPECT_EQ(unary(functions::gelu, narrow).dtype(), bf16);
  EXPECT_EQ(mean(narrow, -1, true).dtype(), bf16);
  EXPECT_EQ(mul(wide, narrow).dtype(), fp32);
  EXPECT_EQ(add(narrow, wide).dtype(), fp32);
  EXPECT_EQ(cat(narrow, wide, 0).dtype(), fp32);
  EXPECT_EQ(cat(activation({0}), narrow, 0).dtype(), fp32) << "an empty list entry has a type too";
  EXPECT_EQ(casts(), 0) << "kernels read both types";
  EXPECT_EQ(sum(activation({2, 8}, DType::int64), -1, false).dtype(), DType::int64);
}

TEST_F(UnderAutocast, AWeightHasOneCopyUntilTheOutermostContextIsLeft) {
  const TensorId w = weight({16, 8});
  const Value x = activation({4, 8}, bf16);
  for (int i = 0; i < 3; ++i) linear(x, Value(b, w), {});
  EXPECT_EQ(casts(), 1);
  const TensorId copy = b.graph.outputs(b.graph.nodes.front()).front();
  EXPECT_EQ(b.graph.tensor(copy).dtype, bf16);
  {
    const Autocast off(b, std::nullopt);
    EXPECT_EQ(mm(activation({4, 8}), activation({8, 4})).dtype(), fp32);
  }
  EXPECT_EQ(b.references(copy), 1);
  on.reset();
  EXPECT_EQ(b.references(copy), 0);
  EXPECT_EQ(b.graph.tensor(copy).dies, b.now());
}

TEST_F(UnderAutocast, NothingElseIsKept) {
  const TensorId frozen = weight({16, 8}, false), trained = weight({16, 8});
  const Value x = activation({4, 8}, bf16);
  for (int i = 0; i < 2; ++i) linear(x, Value(b, frozen), {});
  EXPECT_EQ(casts(), 2);
  for (int i = 0; i < 2; ++i) linear(x, slice(Value(b, trained), 0, 0, 8), {});
  EXPECT_EQ(casts(), 4) << "a view of a weight is no leaf";
  const Value wide = activation({4, 8});
  for (int i = 0; i < 2; ++i) linear(wide, Value(b, trained), {});
  EXPECT_EQ(casts(), 7) << "one of the weight, two of the input";
}

TEST_F(UnderAutocast, OpsInsideAnOpAreNotCast) {
  // Without a fused kernel attention is written out, in fp32.
  const Value q = activation({1, 4, 8, 30}), k = activation({1, 2, 8, 30});
  b.gpu.sm = 70;
  EXPECT_EQ(scaled_dot_product_attention(q, k, k, {}, false).dtype(), bf16);
  int products = 0;
  for (const Node& n : b.graph.nodes)
    if (const auto* m = std::get_if<Matmul>(&b.graph.op(n))) {
      ++products;
      EXPECT_EQ(m->dtype, fp32);
    }
  EXPECT_EQ(products, 2);
  EXPECT_TRUE(b.autocast.enabled);
}

TEST_F(UnderAutocast, GradientsReachWeightsInTheirOwnType) {
  const TensorId w = weight({16, 8});
  const Value x = activation({4, 8});
  b.enable_grad(true);
  b.begin_phase(PhaseKind::forward);
  Value y = to(linear(x, Value(b, w), {}), fp32);
  on.reset();
  const TensorId copy = b.graph.outputs(b.graph.nodes.front()).front();
  EXPECT_EQ(b.references(copy), 0) << "an input without a gradient does not need the weight";
  b.end_phase();
  b.begin_phase(PhaseKind::backward);
  BackwardEngine engine;
  engine.run(y, fill(b, "ones_like", y.shape(), fp32));
  b.end_phase();
  ASSERT_TRUE(b.gradients.has(w));
  EXPECT_EQ(b.gradients.of(w).dtype(), fp32);
  EXPECT_EQ(b.gradients.of(w).shape(), (Shape{16, 8}));
  std::vector<DType> products;
  for (const Node& n : b.graph.nodes)
    if (const auto* m = std::get_if<Matmul>(&b.graph.op(n))) products.push_back(m->dtype);
  EXPECT_EQ(products, (std::vector{bf16, bf16}));
}

TEST_F(UnderAutocast, AWeightNeededByTheBackwardOutlivesTheContext) {
  const TensorId first = weight({8, 8}), second = weight({16, 8});
  const Value x = activation({4, 8});
  b.enable_grad(true);
  Value y = linear(linear(x, Value(b, first), {}), Value(b, second), {});
  on.reset();
  int alive = 0;
  for (const Tensor& t : b.graph.tensors)
    alive += std::string_view(t.name) == "weight cast" && t.alias_of == none && t.dies == none;
  EXPECT_EQ(alive, 1);
  y.reset();
}

}  // namespace
}  // namespace vlmest::autocast_test
