// SPDX-License-Identifier: Apache-2.0
// Clamp, max, gather and writes into a part of a tensor: what they save, and what their backward runs.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>
#include <vlmest/graph/engine.hpp>

namespace vlmest::extremes_test {
namespace {

using namespace eager;

/// The ops of the backward of `run` over x[4, 6] in fp32, and the gradient that x collects.
struct Backward {
  std::vector<std::string> ops;
  Shape gradient;
};
template <class Run>
Backward backward(Run run) {
  Builder b;
  const TensorId parameter = b.persistent("x", Role::weight, DType::fp32, {4, 6});
  b.require_grad(parameter);
  b.enable_grad(true);
  Backward r;
  {
    Value y = run(b, Value(b, parameter));
    const NodeId forward = b.now();
    BackwardEngine engine;
    engine.run(y, fill(b, "ones_like", y.shape(), y.dtype()));
    for (NodeId i = forward + 1; i < b.now(); ++i) r.ops.emplace_back(b.graph.node(i).name);
    r.gradient = b.gradients.of(parameter).shape();
  }
  b.gradients = {};
  return r;
}
using Ops = std::vector<std::string>;

TEST(ExtremesBackward, ClampHandsOnWhatLiesWithinItsBounds) {
  const Backward above = backward([](Builder&, Value x) { return clamp(std::move(x), ClampedAt::max); });
  EXPECT_EQ(above.ops, (Ops{"scalar_tensor", "le.Scalar", "where.self"}));
  const Backward below = backward([](Builder&, Value x) { return clamp(std::move(x), ClampedAt::min); });
  EXPECT_EQ(below.ops, (Ops{"scalar_tensor", "ge.Scalar", "where.self"}));
  const Backward both = backward([](Builder&, Value x) { return clamp(std::move(x), ClampedAt::both); });
  EXPECT_EQ(both.ops, (Ops{"scalar_tensor", "ge.Scalar", "le.Scalar", "logical_and_", "where.self"}));
  EXPECT_EQ(both.gradient, (Shape{4, 6}));
  const Backward tensors = backward([](Builder& b, Value x) {
    Value low = fill(b, "neg", Shape{}, DType::fp32), high = fill(b, "where.self", Shape{}, DType::fp32);
    return clamp(std::move(x), std::move(low), std::move(high));
  });
  EXPECT_EQ(tensors.ops, (Ops{"scalar_tensor", "ge.Tensor", "le.Tensor", "logical_and", "where.self"}));
}

TEST(ExtremesBackward, MaxAndGatherScatterIntoZeros) {
  const Backward largest = backward([](Builder&, Value x) { return max_values(std::move(x)); });
  EXPECT_EQ(largest.ops, (Ops{"zeros", "scatter_.src"}));
  EXPECT_EQ(largest.gradient, (Shape{4, 6}));
  const Backward gathered = backward([](Builder& b, Value x) {
    return gather_columns(std::move(x), b.existing("index", Role::input, DType::int64, {4, 2}));
  });
  EXPECT_EQ(gathered.ops, (Ops{"new_zeros", "scatter_add_"})) << "an index may be there twice";
  EXPECT_EQ(gathered.gradient, (Shape{4, 6}));
}

TEST(ExtremesBackward, CopiesIntoATensorGiveItsSourcesTheirParts) {
  const Backward r = backward([](Builder& b, Value x) {
    Value base = empty(b, "new_empty", {4, 12}, DType::fp32);
    base = copy_into(std::move(base), 0, 6, x);
    return copy_into(std::move(base), 6, 12, std::move(x));
  });
  // The second write: a copy of the gradient and of its part, zeros over the part. The first one's base has no history.
  const Ops write{"new_empty_strided", "copy_", "clone"};
  Ops expected = write;
  expected.insert(expected.end(), {"zeros_like", "copy_"});
  expected.insert(expected.end(), write.begin(), write.end());
  ASSERT_GE(r.ops.size(), expected.size());
  EXPECT_EQ(Ops(r.ops.begin(), r.ops.begin() + static_cast<std::ptrdiff_t>(expected.size())), expected);
  EXPECT_EQ(r.gradient, (Shape{4, 6}));
}

TEST(ExtremesBackward, RepeatsAreSummedUp) {
  const Backward r = backward([](Builder&, Value x) { return repeat(std::move(x), {3, 1, 2}); });
  EXPECT_EQ(r.ops, (Ops{"sum.dim_IntList", "sum.dim_IntList"})) << "the added dimension, then the copies";
  EXPECT_EQ(r.gradient, (Shape{4, 6}));
  const Backward same = backward([](Builder&, Value x) { return repeat(std::move(x), {3, 2}); });
  EXPECT_EQ(same.ops, (Ops{"sum.dim_IntList"})) << "all copies at once";
  EXPECT_EQ(same.gradient, (Shape{4, 6}));
}

TEST(ExtremesForward, MaxDropsItsPlacesWithoutABackward) {
  Builder b;
  const Value x = b.existing("x", Role::input, DType::bf16, {4, 6});
  const Value y = max_values(x);
  const auto outs = b.graph.outputs(b.graph.nodes.back());
  ASSERT_EQ(outs.size(), 2u);
  EXPECT_EQ(y.shape(), (Shape{4, 1}));
  EXPECT_EQ(b.references(outs[1]), 0);
}

}  // namespace
}  // namespace vlmest::extremes_test
