// SPDX-License-Identifier: Apache-2.0
#include <kernels/gather/gather.hpp>
#include <kernels/reference/gather.hpp>

#include "offset.hpp"

namespace vlmest::kernels::gather_test {
namespace {

class GatherKernel : public DeviceTest, public ::testing::WithParamInterface<DType> {
 protected:
  /// Values move unchanged, so results are equal, not close.
  static void expect_right(const Gather& op, std::int64_t offset, Random& random) {
    SCOPED_TRACE("rows " + std::to_string(op.rows) + " of " + std::to_string(op.table_rows) + " width " +
                 std::to_string(op.width) + " offset " + std::to_string(offset));
    const OffsetInput table(op.dtype, random.normal(op.table_rows * op.width), offset);
    const auto indices = random.indices(op.rows, op.table_rows);
    const Input index(indices);
    const OffsetOutput out(op.dtype, op.rows * op.width, offset);
    const cuda::Stream stream;
    RowGather{op}({.table = table.data(), .index = static_cast<const std::int64_t*>(index.data()), .out = out.data()},
                  stream.get());
    stream.synchronize();
    EXPECT_TRUE(out.values() == reference::gather(op, table.values(), indices));
  }
};

TEST_P(GatherKernel, RowsOfEveryWidth) {
  Random random;
  for (const std::int64_t width : {1, 2, 3, 8, 31, 64, 100, 127, 896, 1152, 4096, 5120, 8193, 20000})
    for (const std::int64_t rows : {1, 130, 577})
      expect_right({.rows = rows, .width = width, .table_rows = 97, .dtype = GetParam()}, 0, random);
}

TEST_P(GatherKernel, AddressesThatAreNotAligned) {
  Random random;
  for (const std::int64_t offset : {1, 2, 4})
    for (const std::int64_t width : {64, 1001})
      expect_right({.rows = 50, .width = width, .table_rows = 20, .dtype = GetParam()}, offset, random);
}

TEST_P(GatherKernel, ARowOutsideTheTableIsNotANumber) {
  Random random;
  const Gather op{.rows = 4, .width = 40, .table_rows = 3, .dtype = GetParam()};
  const Input table(op.dtype, random.normal(120));
  const std::vector<std::int64_t> indices{2, 3, -1, 0};
  const Input index(indices);
  const Output out(op.dtype, 160);
  cuda::check(cudaMemset(out.data(), 0, static_cast<std::size_t>(size_of(Elements(160), op.dtype).value())));
  cuda::check(cudaDeviceSynchronize());
  const cuda::Stream stream;
  RowGather{op}({.table = table.data(), .index = static_cast<const std::int64_t*>(index.data()), .out = out.data()},
                stream.get());
  const auto values = out.values();
  for (std::size_t i = 0; i < 160; ++i) EXPECT_EQ(std::isnan(values[i]), i >= 40 && i < 120) << i;
}

INSTANTIATE_TEST_SUITE_P(Types, GatherKernel, ::testing::Values(DType::fp32, DType::bf16, DType::fp16, DType::fp8),
                         [](const auto& i) { return std::string(name(i.param)); });

TEST(GatherKernelLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_NO_THROW(RowGather({.rows = 2, .width = 8, .table_rows = 4}));
  EXPECT_THROW(RowGather({.rows = 2, .width = 8, .table_rows = 4, .dtype = DType::nf4}), Error);
  EXPECT_THROW(RowGather({.rows = 2, .width = 8, .table_rows = 4, .index = DType::int32}), Error);
  EXPECT_THROW(RowGather({.rows = 0, .width = 8, .table_rows = 4}), Error);
  EXPECT_THROW(RowGather({.rows = 2, .width = 8, .table_rows = 0}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::gather_test
