// SPDX-License-Identifier: Apache-2.0
// FlashAttention-2's calls: what they keep for the backward and what the backward takes, against sizes worked out by
// hand from flash_attn_interface.py and flash_api.cpp of version 2.8.3.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/graph/engine.hpp>

namespace vlmest::flash_attention_test {
namespace {

struct Flash {
  Graph graph;
  std::vector<Shape> kept;  ///< storages of the forward that live on to the backward
  std::vector<std::int64_t> scratch;
  std::vector<Shape> gradients;
};

/// A call on parameters q, k and v; what is recorded of it.
template <class Call>
Flash run(const Shape& q_shape, const Shape& k_shape, Call&& call) {
  Builder b;
  const auto parameter = [&](const Shape& s) {
    const TensorId t = b.persistent("x", Role::weight, DType::bf16, s);
    b.require_grad(t);
    return t;
  };
  const TensorId q = parameter(q_shape), k = parameter(k_shape), v = parameter(k_shape);
  b.enable_grad(true);
  b.begin_phase(PhaseKind::forward);
  const Value lengths = b.existing("cu_seqlens", Role::input, DType::int32, {3});
  Value out = call(Value(b, q), Value(b, k), Value(b, v), lengths);
  b.end_phase();
  b.begin_phase(PhaseKind::backward);
  const NodeId boundary = b.now();
  {
    Value seed = eager::fill(b, "ones_like", out.shape(), DType::bf16);
    BackwardEngine engine;
    engine.run(out, std::move(seed));
  }
  b.end_phase();
  out.reset();
  Flash r;
  for (const Tensor& t : b.graph.tensors)
    if (t.role == Role::activation && t.alias_of == none && t.born < boundary && (t.dies == none || t.dies > boundary))
      r.kept.push_back(t.shape);
  for (const Node& n : b.graph.nodes)
    if (std::string(n.name).ends_with("_backward"))
      for (const Bytes s : b.graph.scratch_of(n)) r.scratch.push_back(s.value());
  for (TensorId t : {q, k, v}) r.gradients.push_back(b.graph.tensor(b.gradients.of(t).id()).shape);
  r.graph = b.graph;
  return r;
}
Flash dense(const Shape& q, const Shape& k) {
  return run(q, k, [](Value a, Value b, Value c, const Value&) { return eager::flash_attn_func(a, b, c, true); });
}

TEST(FlashAttention, KeepsResultAndRowSumsBesideItsOperands) {
  const Flash r = dense({2, 256, 8, 64}, {2, 256, 8, 64});
  // The result, logsumexp[B, H, S] and the state of the random numbers; q, k and v are parameters here.
  EXPECT_EQ(r.kept, (std::vector<Shape>{{2, 256, 8, 64}, {2, 8, 256}, {2}}));
  EXPECT_EQ(r.gradients, (std::vector<Shape>{{2, 256, 8, 64}, {2, 256, 8, 64}, {2, 256, 8, 64}}));
  // dq_accum, fp32[B, 256, H, 64]; the row sums are a result that goes at once.
  EXPECT_EQ(r.scratch, (std::vector<std::int64_t>{2 * 256 * 8 * 64 * 4}));
}

TEST(FlashAttention, ExpandsGroupedKeysInTheBackward) {
  const Flash r = dense({1, 200, 8, 160}, {1, 200, 2, 160});
  // Queries in blocks of 128, heads of more than 128 channels in steps of 64; dk and dv of each of the 8 heads.
  EXPECT_EQ(r.scratch, (std::vector<std::int64_t>{256 * 8 * 192 * 4, 200 * 8 * 160 * 2, 200 * 8 * 160 * 2}));
  EXPECT_EQ(r.gradients[1], (Shape{1, 200, 2, 160}));
}

TEST(FlashAttention, PadsHeadsToMultiplesOfEight) {
  const Flash r = dense({1, 128, 4, 36}, {1, 128, 4, 36});
  int padded = 0;
  for (const Node& n : r.graph.nodes) padded += std::string(n.name) == "constant_pad_nd";
  EXPECT_EQ(padded, 4);  // q, k, v and the result's gradient
  // The padded operands and the padded result are kept; gradients are cut, and copied into the parameters' layout.
  EXPECT_EQ(r.kept,
            (std::vector<Shape>{{1, 128, 4, 40}, {1, 128, 4, 40}, {1, 128, 4, 40}, {1, 128, 4, 40}, {1, 4, 128}, {2}}));
  EXPECT_EQ(r.gradients[0], (Shape{1, 128, 4, 36}));
}

TEST(FlashAttention, PackedSequencesStandApartInTheAccumulator) {
  const std::vector<std::int64_t> lengths{100, 28};
  const Flash r = run({128, 4, 64}, {128, 4, 64}, [&](Value a, Value b, Value c, const Value& at) {
    return eager::flash_attn_varlen_func(a, b, c, at, lengths);
  });
  EXPECT_EQ(r.kept, (std::vector<Shape>{{128, 4, 64}, {4, 128}, {2}}));
  EXPECT_EQ(r.scratch, (std::vector<std::int64_t>{(128 + 2 * 128) * 4 * 64 * 4}));
  // 2 x 2 products of length² forward, five for the backward's.
  Flops forward{}, backward{};
  for (const Node& n : r.graph.nodes) {
    const Flops f = cost(r.graph.op(n)).flops;
    (std::string(n.name).ends_with("_backward") ? backward : forward) += f;
  }
  const std::int64_t pairs = 100 * 100 + 28 * 28;
  EXPECT_EQ(forward, Flops(2 * 2 * pairs * 4 * 64));
  EXPECT_EQ(backward, Flops(2 * 5 * pairs * 4 * 64));
}

TEST(FlashAttention, SplitsLongKeysOfFewQueries) {
  Builder b;
  const Value q = b.existing("q", Role::input, DType::bf16, {1, 1, 8, 128});
  const Value k = b.existing("k", Role::input, DType::bf16, {1, 8192, 8, 128});
  b.begin_phase(PhaseKind::decode);
  eager::flash_attn_func(q, k, k, true);
  b.end_phase();
  const auto scratch = b.graph.scratch_of(b.graph.nodes.back());
  ASSERT_EQ(scratch.size(), 2u);  // partial sums, and results of 128 channels
  EXPECT_EQ(scratch[1], scratch[0] * 128);
  EXPECT_EQ(scratch[0].value() % (8 * 4), 0);
}

}  // namespace
}  // namespace vlmest::flash_attention_test
