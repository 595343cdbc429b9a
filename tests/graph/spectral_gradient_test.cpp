// SPDX-License-Identifier: Apache-2.0
// The backward of a learned filter between a real transform and its inverse, op by op as torch's FunctionsManual.cpp
// writes it.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/graph/engine.hpp>

namespace vlmest::spectral_gradient_test {
namespace {

struct Filtered {
  std::vector<std::string> ops;  ///< of the backward, with the shapes of their results
  std::vector<Bytes> bytes;      ///< of those results
  Bytes saved{};
};

Filtered filter(std::int64_t tiles, std::int64_t side, std::int64_t channels, bool trains_input) {
  Builder b;
  const std::int64_t half = half_spectrum(side);
  const TensorId features = b.persistent("x", Role::weight, DType::fp32, {tiles, side, side, channels});
  const TensorId weight = b.persistent("w", Role::weight, DType::fp32, {side, half, channels, 2});
  if (trains_input) b.require_grad(features);
  b.require_grad(weight);
  b.enable_grad(true);
  b.begin_phase(PhaseKind::forward);
  const eager::FftAxes axes{{1, 2, 0}, 2};
  Value x = eager::rfft(Value(b, features), axes, eager::FftNorm::ortho);
  x = eager::mul(x, eager::view_as_complex(Value(b, weight)));
  x = eager::irfft(x, side, axes, eager::FftNorm::ortho);
  b.end_phase();
  b.begin_phase(PhaseKind::backward);
  const NodeId boundary = b.now();
  {
    Value seed = eager::fill(b, "ones_like", x.shape(), x.dtype());
    BackwardEngine engine;
    engine.run(x, std::move(seed));
  }
  b.end_phase();
  x.reset();
  Filtered r;
  for (NodeId i = boundary + 1; i < b.now(); ++i) {
    const Node& n = b.graph.node(i);
    const Tensor& out = b.graph.tensor(b.graph.outputs(n).front());
    r.ops.push_back(std::string(n.name) + " " + to_string(out.shape));
    r.bytes.push_back(size_of(numel(out.shape), out.dtype));
  }
  for (const Tensor& t : b.graph.tensors)
    if (t.role == Role::activation && t.alias_of == none && t.born < boundary && t.dies > boundary)
      r.saved += requested_bytes(t);
  return r;
}
std::string grid(const char* op, std::initializer_list<std::int64_t> sizes) {
  return std::string(op) + " " + to_string(Shape(sizes));
}

TEST(SpectralGradient, RunsWhatTorchRuns) {
  const Filtered r = filter(3, 24, 64, true);
  EXPECT_EQ(r.ops, (std::vector<std::string>{
                       grid("_fft_r2c", {3, 24, 13, 64}),     // of the inverse transform
                       grid("mul_.Tensor", {3, 24, 11, 64}),  // frequencies that stand for two: 24 - 13
                       grid("clone", {3, 24, 13, 64}),        // the conjugate spectrum
                       grid("mul.Tensor", {3, 24, 13, 64}),   // the filter's gradient, then over the tiles
                       grid("clone", {24, 13, 64}),           // the conjugate filter
                       grid("mul.Tensor", {3, 24, 13, 64}),
                       grid("sum.dim_IntList", {1, 24, 13, 64}),
                       grid("new_zeros", {3, 24, 24, 64}),  // the other half of the spectrum
                       grid("copy_", {3, 24, 13, 64}),
                       grid("_fft_c2c", {3, 24, 24, 64}),
                       grid("new_empty_strided", {3, 24, 24, 64}),  // its real part, in the parameter's layout
                       grid("copy_", {3, 24, 24, 64}),
                   }));
  EXPECT_EQ(r.bytes[9], Bytes(3 * 24 * 24 * 64 * 8));  // complex, twice the features
  // The spectrum and the result: transforms save nothing.
  EXPECT_EQ(r.saved, Bytes(3 * 24 * 13 * 64 * 8 + 3 * 24 * 24 * 64 * 4));
}

TEST(SpectralGradient, FrozenFeaturesNeedNoTransformBack) {
  const Filtered r = filter(2, 16, 8, false);
  for (const auto& op : r.ops) {
    EXPECT_EQ(op.find("_fft_c2c"), std::string::npos) << op;
    EXPECT_EQ(op.find("new_zeros"), std::string::npos) << op;
  }
}

TEST(SpectralGradient, OddSizesDoubleAllButTheMean) {
  const Filtered r = filter(1, 27, 8, true);
  EXPECT_EQ(r.ops[1], grid("mul_.Tensor", {1, 27, 13, 8}));  // 27 - 14
}

}  // namespace
}  // namespace vlmest::spectral_gradient_test
