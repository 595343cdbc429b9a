// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <kernels/cuda/fill.hpp>
#include <kernels/cuda/graph.hpp>
#include <kernels/matmul/cublaslt_matmul.hpp>
#include <kernels/reference/matmul.hpp>

#include "device_tensor.hpp"

namespace vlmest::kernels::matmul_test {
namespace {

using Choice = CublasLtOptions::Choice;

std::string spelt(const Matmul& op) {
  return std::string(name(op.dtype)) + " batch " + std::to_string(op.batch) + " m " + std::to_string(op.m) + " n " +
         std::to_string(op.n) + " k " + std::to_string(op.k) + (op.bias ? " with bias" : "");
}

/// Fresh operands, the reference's answer, one run into a poisoned output.
void expect_right(const Matmul& op, const CublasLtOptions& options, Random& random) {
  SCOPED_TRACE(spelt(op));
  CublasLtMatmul product(op, options);
  const cuda::Stream stream;
  product.tune(stream.get());
  const Input a(op.dtype, random.uniform(op.batch * op.m * op.k));
  const Input b(op.dtype, random.uniform(op.batch * op.n * op.k));
  const Input bias(result_type(op.dtype), random.uniform(op.bias ? op.n : 0, -4, 4));
  const Output out(result_type(op.dtype), op.batch * op.m * op.n);
  const cuda::Buffer workspace = scratch(product.workspace());
  EXPECT_LE(product.workspace(), options.workspace_limit);
  product({a.data(), b.data(), bias.data(), out.data(), workspace.data()}, stream.get());
  stream.synchronize();
  expect_close(out.values(), reference::matmul(op, a.values(), b.values(), bias.values(), options.layout),
               tolerance(op.dtype));
}

class CublasLt : public DeviceTest, public ::testing::WithParamInterface<DType> {
 protected:
  /// Sizes of rows, columns and terms that the type can do: fp8 needs multiples of 16 in n and k.
  std::vector<Matmul> products() const {
    const DType t = GetParam();
    if (t == DType::fp8)
      return {{.m = 1, .n = 16, .k = 16, .dtype = t},
              {.m = 77, .n = 272, .k = 144, .dtype = t},
              {.m = 256, .n = 512, .k = 1024, .dtype = t}};
    return {{.m = 64, .n = 33, .k = 1, .dtype = t},      {.m = 64, .n = 1, .k = 40, .dtype = t},
            {.m = 1, .n = 1000, .k = 512, .dtype = t},   {.m = 37, .n = 53, .k = 29, .dtype = t},
            {.m = 64, .n = 855, .k = 321, .dtype = t},   {.m = 255, .n = 128, .k = 1023, .dtype = t},
            {.m = 256, .n = 512, .k = 1024, .dtype = t}, {.m = 1025, .n = 130, .k = 66, .dtype = t}};
  }
};

TEST_P(CublasLt, LinearWithAndWithoutBias) {
  Random random;
  for (Matmul op : products())
    for (const bool bias : {false, true}) {
      op.bias = bias;
      expect_right(op, {}, random);
    }
}

TEST_P(CublasLt, BestOfSeveralGivesTheSameProduct) {
  Random random;
  for (Matmul op : products()) {
    op.bias = true;
    expect_right(op, {.choice = Choice::best, .candidates = 8}, random);
  }
}

TEST_P(CublasLt, SecondFactorInRows) {
  if (GetParam() == DType::fp8) GTEST_SKIP() << "fp8 has one layout";
  Random random;
  for (const Matmul& op : products()) expect_right(op, {.layout = WeightLayout::mm}, random);
}

TEST_P(CublasLt, Batched) {
  Random random;
  for (Matmul op : products()) {
    if (op.m * op.n * op.k > 10'000'000) continue;
    op.batch = 5;
    op.bias = GetParam() != DType::fp8;  // nothing here runs batched fp8 products with a bias
    expect_right(op, {}, random);
  }
}

TEST_P(CublasLt, LongSumsKeepTheirPrecision) {
  Random random;
  expect_right({.m = 64, .n = 48, .k = 16384, .dtype = GetParam()}, {}, random);
}

TEST_P(CublasLt, WithoutScratchAndAtTheElementsAlignment) {
  Random random;
  const int alignment = GetParam() == DType::fp8 ? 16 : bits(GetParam()) / 8;
  for (const Matmul& op : products()) expect_right(op, {.workspace_limit = Bytes(0), .alignment = alignment}, random);
}

INSTANTIATE_TEST_SUITE_P(Types, CublasLt,
                         ::testing::Values(DType::bf16, DType::fp16, DType::tf32, DType::fp32, DType::fp8),
                         [](const auto& i) { return std::string(name(i.param)); });

class CublasLtAlgorithm : public DeviceTest {};

TEST_F(CublasLtAlgorithm, OfFp8MayKeepSumsInLowerPrecision) {
  Random random;
  expect_right({.m = 128, .n = 256, .k = 512, .dtype = DType::fp8}, {.fast_accumulation = true}, random);
}

TEST_F(CublasLtAlgorithm, IsReportedInTheTermsOfTheOp) {
  // Hopper's smallest tile has 64 rows as the library counts, which are columns of `out`: a tile of a wide `out` with
  // few rows is wider than it is high, one of a tall `out` is square at the least.
  const CublasLtMatmul tall({.m = 32768, .n = 16, .k = 512});
  EXPECT_GE(tall.algorithm().tile_m, tall.algorithm().tile_n);
  const CublasLtMatmul wide({.m = 16, .n = 32768, .k = 512});
  EXPECT_GT(wide.algorithm().tile_m, 0);
  EXPECT_LT(wide.algorithm().tile_m, wide.algorithm().tile_n);
  for (const auto* product : {&tall, &wide}) {
    EXPECT_GE(product->algorithm().split_k, 1);
    EXPECT_GT(product->algorithm().waves, 0);
    EXPECT_EQ(product->algorithm().time, Seconds{});
    EXPECT_EQ(product->algorithms().size(), 1u);
  }
}

TEST_F(CublasLtAlgorithm, TuningKeepsTheFastest) {
  CublasLtMatmul product({.m = 2048, .n = 2048, .k = 2048}, {.choice = Choice::best, .candidates = 8});
  ASSERT_GT(product.algorithms().size(), 1u);
  EXPECT_EQ(&product.algorithm(), &product.algorithms().front());
  const cuda::Stream stream;
  product.tune(stream.get());
  EXPECT_GT(product.algorithm().time, Seconds{});
  for (const MatmulAlgorithm& other : product.algorithms()) {
    if (other.time > Seconds{}) {
      EXPECT_LE(product.algorithm().time, other.time);
    }
  }
}

TEST_F(CublasLtAlgorithm, RunsFromAGraph) {
  Random random;
  const Matmul op{.m = 96, .n = 80, .k = 64, .bias = true};
  const CublasLtMatmul product(op);
  const cuda::Stream stream;
  const Input a(op.dtype, random.uniform(op.m * op.k));
  const Input b(op.dtype, random.uniform(op.n * op.k));
  const Input bias(op.dtype, random.uniform(op.n));
  const Output out(op.dtype, op.m * op.n);
  const cuda::Buffer workspace = scratch(product.workspace());
  const MatmulOperands operands{a.data(), b.data(), bias.data(), out.data(), workspace.data()};
  product(operands, stream.get());
  stream.synchronize();
  cuda::poison(out.data(), size_of(Elements(op.m * op.n), op.dtype), stream.get());
  const cuda::Graph graph(stream.get(), [&] { product(operands, stream.get()); });
  EXPECT_GE(graph.nodes(), 1u);
  stream.synchronize();
  EXPECT_TRUE(std::isnan(out.values().front())) << "the recording ran";
  graph.launch(stream.get());
  stream.synchronize();
  expect_close(out.values(), reference::matmul(op, a.values(), b.values(), bias.values()), tolerance(op.dtype));
}

TEST(CublasLtLimits, AreSaidBeforeAnythingRuns) {
  const Matmul fp8{.m = 16, .n = 16, .k = 32, .dtype = DType::fp8};
  EXPECT_NO_THROW(check_cublaslt(fp8, {}));
  EXPECT_THROW(check_cublaslt(fp8, {.layout = WeightLayout::mm}), Error);
  EXPECT_THROW(check_cublaslt({.m = 16, .n = 24, .k = 32, .dtype = DType::fp8}, {}), Error);
  EXPECT_THROW(check_cublaslt({.m = 16, .n = 16, .k = 40, .dtype = DType::fp8}, {}), Error);
  EXPECT_THROW(check_cublaslt({.m = 16, .n = 16, .k = 16, .dtype = DType::fp64}, {}), Error);
  EXPECT_THROW(check_cublaslt({.m = 0, .n = 16, .k = 16}, {}), Error);
  EXPECT_THROW(check_cublaslt({}, {.candidates = 0}), Error);
  EXPECT_THROW(check_cublaslt({}, {.alignment = 48}), Error);
  EXPECT_NO_THROW(check_cublaslt({}, {.alignment = 2}));
}

TEST(CublasLtTiles, AnUnknownOneHasNoSize) {
  EXPECT_EQ(tile_size(CUBLASLT_MATMUL_TILE_256x128), (TileSize{256, 128}));
  EXPECT_EQ(tile_size(100'000), TileSize{});
  EXPECT_EQ(cluster_size(CUBLASLT_CLUSTER_SHAPE_1x2x1), (TileSize{1, 2}));
  EXPECT_EQ(cluster_size(100'000), TileSize{});
}

}  // namespace
}  // namespace vlmest::kernels::matmul_test
