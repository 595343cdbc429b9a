// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>
#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/engine.hpp>

namespace vlmest::index_gradient_test {
namespace {

using namespace eager;

/// A graph in which `weight` collects a gradient.
struct Tape {
  Builder b;
  Value weight;
  explicit Tape(const Shape& s, DType t = DType::bf16) {
    const TensorId w = b.persistent("weight", Role::weight, t, s);
    b.require_grad(w);
    b.enable_grad(true);
    b.begin_phase(PhaseKind::forward);
    weight = Value(b, w);
  }
  Value input(const Shape& s, DType t) { return b.existing("input", Role::input, t, s); }
  /// Runs the backward from `result` and returns the ops that it records.
  std::vector<std::string> backward(Value result) {
    const NodeId from = b.now();
    Value seed = fill(b, "seed", result.shape(), result.dtype());
    BackwardEngine().run(result, seed);
    EXPECT_EQ(b.gradients.of(weight.id()).shape(), weight.shape());
    std::vector<std::string> ops;
    for (NodeId n = from + 1; n < b.now(); ++n) ops.emplace_back(b.graph.node(n).name);
    return ops;
  }
  Bytes scratch_of(const char* op) const {
    Bytes sum{};
    for (const auto& n : b.graph.nodes)
      if (std::string_view(n.name) == op)
        for (auto s : b.graph.scratch_of(n)) sum += s;
    return sum;
  }
};

using Ops = std::vector<std::string>;

// Peaks inside index_put with accumulation, recorded on sm_90 with torch 2.11.
TEST(IndexGradient, SortsThePlacesOfARowIndex) {
  Tape t({968, 2048});
  EXPECT_EQ(t.backward(take_rows(t.weight, t.input({7744}, DType::int64))), (Ops{"new_zeros", "_index_put_impl_"}));
  EXPECT_EQ(t.scratch_of("_index_put_impl_"), Bytes(378367));
}
TEST(IndexGradient, TakesOneBlockForFewPlacesFromTheHost) {
  Tape t({768, 2048});
  t.backward(host_index(t.weight, {768}));
  EXPECT_EQ(t.scratch_of("_index_put_impl_"), Bytes(24577));
}
TEST(IndexGradient, MakesLinearPlacesOutOfAMask) {
  Tape t({2, 484, 2560});
  t.b.observed = true;
  EXPECT_EQ(t.backward(masked_index(t.weight, t.input({2, 484}, DType::boolean), 768)),
            (Ops{"new_zeros", "index_put"}));
  EXPECT_EQ(t.scratch_of("index_put"), Bytes(30720));
}
TEST(IndexGradient, OfAnAssignmentIsZeroWhereItWrote) {
  Tape t({2, 484, 2560});
  const Value mask = t.input({2, 484}, DType::boolean);
  Value x = clone(t.weight);
  Value rows = masked_index(x, mask, 768);
  x = masked_index_put_(std::move(x), mask, mul_scalar(std::move(rows)), 768);
  EXPECT_EQ(t.backward(x),
            (Ops{"zeros", "index_put", "index.Tensor", "mul.Tensor", "new_zeros", "_index_put_impl_", "add_.Tensor"}));
}

// Peaks inside embedding_dense_backward, recorded likewise.
TEST(EmbeddingGradient, SumsSegmentsOfManyRows) {
  EXPECT_EQ(embedding_backward_workspace(3072, 2304, 1024, DType::bf16), Bytes{});
  EXPECT_EQ(embedding_backward_workspace(12288, 2304, 1024, DType::bf16), Bytes(14827120));
  EXPECT_EQ(embedding_backward_workspace(12288, 2304, 1152, DType::bf16), Bytes(16635504));
  EXPECT_EQ(embedding_backward_workspace(24576, 2304, 1024, DType::bf16), Bytes(20165848));
}

// Of tables of biases, which are smaller than what their rows are sorted in: recorded, less a copy of the gradient.
TEST(EmbeddingGradient, SortsManyRowsOfASmallTable) {
  EXPECT_EQ(embedding_backward_workspace(17424, 32, 32, DType::bf16), Bytes(1831295 - 2 * 17424 * 32));
  EXPECT_EQ(embedding_backward_workspace(17424, 24, 32, DType::bf16), Bytes(1831807 - 2 * 17424 * 32));
  EXPECT_EQ(embedding_backward_workspace(17424, 32, 32, DType::fp32), Bytes(2944383 - 4 * 17424 * 32));
}

TEST(EmbeddingGradient, OfAGradientWithGapsIsTakenOfACopy) {
  const auto scratch = [](bool gaps) {
    Builder b;
    Value rows = b.existing("rows", Role::input, DType::int64, {10});
    Value g = b.existing("gradient", Role::activation, DType::bf16, gaps ? Shape{4, 10} : Shape{10, 4});
    if (gaps) g = transpose(std::move(g), 0, 1);
    embedding_dense_backward(std::move(g), std::move(rows), {32, 4});
    Bytes r{};
    for (const Bytes s : b.graph.scratch_of(b.graph.nodes.back())) r += s;
    return r;
  };
  EXPECT_EQ(scratch(false), Bytes{});
  EXPECT_EQ(scratch(true), Bytes(80));
}

TEST(Gradient, OfADivisionInPlaceKeepsWhatWasThere) {
  Tape t({8, 4}, DType::fp32);
  Value x = mul_scalar(t.weight);
  Value total = sum(x, -1, true);
  x = div_(std::move(x), std::move(total));
  EXPECT_EQ(t.backward(std::move(x)), (Ops{"div.Tensor", "div.Tensor", "neg", "mul.Tensor", "div.Tensor",
                                           "sum.dim_IntList", "add_.Tensor", "mul.Tensor"}));
}

TEST(Gradient, OfAGroupedProductHasTheMatrixItsLayout) {
  Tape t({4, 32, 16});
  const Value rows = t.input({24, 16}, DType::bf16), offsets = t.input({4}, DType::int32);
  EXPECT_EQ(t.backward(grouped_mm(rows, transpose(t.weight, 1, 2), offsets, 4)), (Ops{"_grouped_mm"}));
}

// A view keeps its base, so that the sum of two gradients goes to a fresh tensor where the first is a view.
TEST(Gradient, IsAddedInPlaceUnlessItIsAView) {
  Tape plain({8, 8});
  Value negative = neg(plain.weight);
  Value scaled = mul_scalar(plain.weight);
  EXPECT_EQ(plain.backward(add(negative, scaled)), (Ops{"mul.Tensor", "neg", "add_.Tensor"}));
  Tape viewed({8, 8});
  Value a = neg(viewed.weight);
  Value turned = transpose(mul_scalar(transpose(viewed.weight, 0, 1)), 0, 1);
  EXPECT_EQ(viewed.backward(add(a, turned)), (Ops{"mul.Tensor", "neg", "add.Tensor"}));
}

// The gradient of rows that are put somewhere is picked from there; the rows stay saved all the same.
TEST(IndexGradient, PicksRowsThatWereCopied) {
  Tape t({6, 8});
  Value zeros = fill(t.b, "zeros", {6, 8}, DType::bf16);
  Value rows = mul_scalar(t.weight);
  const TensorId copied = rows.id();
  const Value y = index_copy_(std::move(zeros), t.input({6}, DType::int64), std::move(rows));
  EXPECT_EQ(t.b.graph.tensor(copied).dies, none) << "saved";
  EXPECT_EQ(t.backward(y), (Ops{"index_select", "mul.Tensor"}));
}

// A part of a tensor that is written over: its gradient is a copy of the whole's. What is written over as a whole is
// no view.
TEST(IndexGradient, OfAnAssignedPartAndOfAllOfIt) {
  const auto assigned = [](std::int64_t begin, std::int64_t end) {
    Tape t({end - begin, 8});
    Value whole = fill(t.b, "zeros", {6, 8}, DType::bf16);
    assign(
        whole, [=](const Value& v) { return slice(v, 0, begin, end); }, mul_scalar(t.weight));
    return t.backward(whole);
  };
  EXPECT_EQ(assigned(2, 5), (Ops{"new_empty_strided", "copy_", "clone", "mul.Tensor"}));
  EXPECT_EQ(assigned(0, 6), (Ops{"mul.Tensor"}));
}

// Products of no rows, as those of an expert to which no token goes, run nothing; their weight's gradient is zeros.
TEST(IndexGradient, AProductOfNoRowsRunsNothing) {
  Tape t({8, 4});
  const auto last = [&] { return cost(t.b.graph.op(t.b.graph.nodes.back())); };
  const Value y = mm(t.input({0, 8}, DType::bf16), t.weight);
  EXPECT_EQ(last().kernels, 0);
  EXPECT_EQ(last().read + last().written, Bytes{});
  EXPECT_EQ(t.backward(y), (Ops{"mm"}));
  EXPECT_EQ(last().kernels, 1);
  EXPECT_EQ(last().flops, Flops{});
  EXPECT_EQ(last().written, Bytes(8 * 4 * 2));
}

}  // namespace
}  // namespace vlmest::index_gradient_test
