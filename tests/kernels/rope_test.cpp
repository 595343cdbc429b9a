// SPDX-License-Identifier: Apache-2.0
#include <kernels/reference/rope.hpp>
#include <kernels/rope/rope.hpp>

#include "offset.hpp"

namespace vlmest::kernels::rope_test {
namespace {

struct Types {
  DType dtype;
  DType angles;
};

class RopeKernel : public DeviceTest, public ::testing::WithParamInterface<Types> {
 protected:
  RotaryEmbedding op(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
                     std::int64_t head_dim) const {
    return {.batch = batch,
            .rows = rows,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .rotary_dim = head_dim,
            .dtype = GetParam().dtype,
            .angles = GetParam().angles};
  }

  /// Angles whose halves differ, which a kernel that reads one half only would not survive.
  void expect_right(const RotaryEmbedding& o, std::int64_t offset, bool in_place, Random& random) const {
    SCOPED_TRACE("batch " + std::to_string(o.batch) + " rows " + std::to_string(o.rows) + " heads " +
                 std::to_string(o.heads) + " and " + std::to_string(o.kv_heads) + " of " + std::to_string(o.head_dim) +
                 " offset " + std::to_string(offset) + (in_place ? " in place" : ""));
    const std::int64_t tokens = o.batch * o.rows, nq = tokens * o.heads * o.head_dim,
                       nk = tokens * o.kv_heads * o.head_dim, angles = o.rows * o.head_dim;
    const OffsetInput q(o.dtype, random.normal(nq), offset), k(o.dtype, random.normal(nk), offset);
    const OffsetInput cos(o.angles, random.uniform(angles), offset), sin(o.angles, random.uniform(angles), offset);
    const OffsetOutput q_out(o.dtype, nq, offset), k_out(o.dtype, nk, offset);
    const cuda::Stream stream;
    RopeOperands operands{.q = q.data(),
                          .k = k.data(),
                          .cos = cos.data(),
                          .sin = sin.data(),
                          .q_out = q_out.data(),
                          .k_out = k_out.data()};
    if (in_place) {
      const auto copied = [&](const void* from, void* to, std::int64_t n) {
        const auto bytes = static_cast<std::size_t>(size_of(Elements(n), o.dtype).value());
        cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.get()));
        return to;
      };
      operands.q = copied(q.data(), q_out.data(), nq);
      operands.k = copied(k.data(), k_out.data(), nk);
    }
    FusedRope{o}(operands, stream.get());
    stream.synchronize();
    const auto expected = reference::rope(o, q.values(), k.values(), cos.values(), sin.values());
    expect_close(q_out.values(), expected.q, tolerance(o.dtype));
    expect_close(k_out.values(), expected.k, tolerance(o.dtype));
  }
};

TEST_P(RopeKernel, HeadsOfEveryKind) {
  Random random;
  for (const std::int64_t head_dim : {2, 6, 64, 72, 80, 96, 128, 256, 512}) {
    expect_right(op(1, 77, 8, 2, head_dim), 0, false, random);
    expect_right(op(1, 5, 1, 1, head_dim), 0, false, random);
  }
  expect_right(op(1, 300, 32, 8, 128), 0, false, random);
  expect_right(op(1, 19, 129, 3, 64), 0, false, random);
}

TEST_P(RopeKernel, SequencesShareAngles) {
  Random random;
  expect_right(op(3, 50, 12, 2, 64), 0, false, random);
  expect_right(op(4, 7, 3, 3, 80), 0, false, random);
}

TEST_P(RopeKernel, InPlaceAndAddressesThatAreNotAligned) {
  Random random;
  for (const std::int64_t head_dim : {72, 128}) {
    expect_right(op(2, 33, 14, 2, head_dim), 0, true, random);
    for (const std::int64_t offset : {1, 2, 4}) expect_right(op(1, 20, 5, 1, head_dim), offset, offset == 2, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RopeKernel,
                         ::testing::Values(Types{DType::fp32, DType::fp32}, Types{DType::bf16, DType::bf16},
                                           Types{DType::bf16, DType::fp32}, Types{DType::fp16, DType::fp16},
                                           Types{DType::fp16, DType::fp32}),
                         [](const auto& i) {
                           return std::string(name(i.param.dtype)) + "_by_" + std::string(name(i.param.angles));
                         });

TEST(RopeKernelLimits, AreSaidBeforeAnythingRuns) {
  const RotaryEmbedding good{.rows = 4, .heads = 2, .kv_heads = 1, .head_dim = 64, .rotary_dim = 64};
  EXPECT_NO_THROW(FusedRope{good});
  const auto refused = [&](auto change) {
    RotaryEmbedding o = good;
    change(o);
    EXPECT_THROW(FusedRope{o}, Error);
  };
  refused([](RotaryEmbedding& o) { o.rotary_dim = 32; });
  refused([](RotaryEmbedding& o) { o.head_dim = o.rotary_dim = 63; });
  refused([](RotaryEmbedding& o) { o.head_dim = o.rotary_dim = 514; });
  refused([](RotaryEmbedding& o) { o.angles = DType::fp16; });
  refused([](RotaryEmbedding& o) { o.dtype = o.angles = DType::fp8; });
  refused([](RotaryEmbedding& o) { o.rows = 0; });
}

}  // namespace
}  // namespace vlmest::kernels::rope_test
