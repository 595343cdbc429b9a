// SPDX-License-Identifier: Apache-2.0
// What a spectral block holds while its gradients are computed.
#include <gtest/gtest.h>

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/graph/engine.hpp>

namespace vlmest::fft_buffers_test {
namespace {

TEST(FftBuffers, CountWhatTheForwardKept) {
  Builder b;
  const TensorId features = b.persistent("x", Role::weight, DType::fp32, {3, 24, 24, 64});
  const TensorId weight = b.persistent("w", Role::weight, DType::fp32, {24, 13, 64, 2});
  b.require_grad(weight);
  b.enable_grad(true);
  b.begin_phase(PhaseKind::forward);
  const eager::FftAxes axes{{1, 2, 0}, 2};
  Value x;
  {
    const InScope block(b, b.child("blocks", 0));
    x = eager::rfft(Value(b, features), axes);
    x = eager::mul(x, eager::view_as_complex(Value(b, weight)));
    x = eager::irfft(x, 24, axes);
  }
  b.end_phase();
  b.begin_phase(PhaseKind::backward);
  {
    Value seed = eager::fill(b, "ones_like", x.shape(), x.dtype());
    BackwardEngine engine;
    engine.run(x, std::move(seed));
  }
  x.reset();
  b.end_phase();
  const auto runs = fft_buffers(b.graph);
  ASSERT_EQ(runs.size(), 1u);
  // The product of the filter's gradient: its result, the incoming spectrum, the kept one and its conjugate, and the
  // block's own result, which is the root here.
  const Bytes spectrum(3 * 24 * 13 * 64 * 8), features_bytes(3 * 24 * 24 * 64 * 4);
  EXPECT_EQ(runs[0].bytes, spectrum * 4 + features_bytes);
}

}  // namespace
}  // namespace vlmest::fft_buffers_test
