// SPDX-License-Identifier: Apache-2.0
#include <kernels/reference/matmul.hpp>

#include "../compare.hpp"

namespace vlmest::kernels {
namespace {

TEST(ReferenceMatmul, IsTheSumOfProductsInBothLayouts) {
  Random random;
  for (const Matmul op :
       {Matmul{.m = 1, .n = 1, .k = 1}, Matmul{.m = 3, .n = 5, .k = 7, .bias = true},
        Matmul{.batch = 4, .m = 6, .n = 2, .k = 9, .bias = true}, Matmul{.batch = 2, .m = 1, .n = 8, .k = 3}})
    for (const WeightLayout layout : {WeightLayout::linear, WeightLayout::mm}) {
      const auto a = random.uniform(op.batch * op.m * op.k);
      const auto b = random.uniform(op.batch * op.n * op.k);
      const auto bias = random.uniform(op.bias ? op.n : 0);
      const auto out = reference::matmul(op, a, b, bias, layout);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < op.batch; ++i)
        for (std::int64_t row = 0; row < op.m; ++row)
          for (std::int64_t column = 0; column < op.n; ++column) {
            double sum = op.bias ? bias[static_cast<std::size_t>(column)] : 0;
            for (std::int64_t k = 0; k < op.k; ++k) {
              const std::int64_t weight = layout == WeightLayout::linear ? column * op.k + k : k * op.n + column;
              sum += a[static_cast<std::size_t>((i * op.m + row) * op.k + k)] *
                     b[static_cast<std::size_t>(i * op.n * op.k + weight)];
            }
            expected.push_back(sum);
          }
      expect_close(out, expected, 1e-14);
    }
}

TEST(ReferenceMatmul, RefusesOperandsOfAnotherSize) {
  const std::vector<double> six(6);
  const std::vector<double> four(4);
  const Matmul op{.m = 2, .n = 2, .k = 3};
  EXPECT_EQ(reference::matmul(op, six, six).size(), 4u);
  EXPECT_THROW(reference::matmul(op, four, six), Error);
  EXPECT_THROW(reference::matmul(op, six, four), Error);
  EXPECT_THROW(reference::matmul(op, six, six, four), Error);
}

}  // namespace
}  // namespace vlmest::kernels
