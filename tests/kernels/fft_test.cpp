// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <kernels/cuda/fill.hpp>
#include <kernels/cuda/graph.hpp>
#include <kernels/fft/cufft_plan.hpp>
#include <kernels/reference/fft.hpp>

#include <vlmest/op/cufft_workspace.hpp>

#include "device_tensor.hpp"

namespace vlmest::kernels::fft_test {
namespace {

using Kind = Fft::Kind;

std::string spelt(const Fft& f) {
  std::string r = f.kind == Kind::c2c ? (f.inverse ? "inverse c2c" : "c2c") : f.kind == Kind::r2c ? "r2c" : "c2r";
  r += " " + std::string(name(f.dtype)) + " batch " + std::to_string(f.batch) + " of " + std::to_string(f.n[0]);
  for (int i = 1; i < f.rank; ++i) r += " x " + std::to_string(f.n[static_cast<std::size_t>(i)]);
  return r;
}

/// A c2r is given the spectrum of real data: what it does to any other input is not defined.
std::vector<double> fresh_input(const Fft& f, Random& random) {
  if (f.kind == Kind::c2c) return random.uniform(2 * points(f).value());
  const auto real = random.uniform(points(f).value());
  if (f.kind == Kind::r2c) return real;
  Fft forward = f;
  forward.kind = Kind::r2c;
  return reference::fft(forward, real);
}

DType in_type(const Fft& f) { return f.kind == Kind::r2c ? f.dtype : complex_of(f.dtype); }
DType out_type(const Fft& f) { return f.kind == Kind::c2r ? f.dtype : complex_of(f.dtype); }

void expect_right(const CufftPlan& plan, Random& random, const cuda::Buffer& workspace, const cuda::Stream& stream) {
  const Fft& f = plan.op();
  SCOPED_TRACE(spelt(f));
  ASSERT_GE(workspace.size(), plan.workspace());
  const Input in(in_type(f), fresh_input(f, random));
  const Output out(out_type(f), f.kind == Kind::c2r ? points(f).value() : spectrum(f).value());
  plan({in.mutable_data(), out.data(), workspace.data()}, stream.get());
  stream.synchronize();
  expect_close(out.values(), reference::fft(f, in.values()), tolerance(complex_of(f.dtype)));
}

/// Each size as r2c, c2r and c2c in both directions.
std::vector<Fft> all_kinds(const std::vector<Fft>& sizes, DType dtype) {
  std::vector<Fft> r;
  for (Fft f : sizes) {
    f.dtype = dtype;
    for (const Kind kind : {Kind::c2c, Kind::r2c, Kind::c2r}) {
      f.kind = kind;
      r.push_back(f);
    }
    f.kind = Kind::c2c;
    f.inverse = true;
    r.push_back(f);
  }
  return r;
}

class Cufft : public DeviceTest {
 protected:
  void expect_all_right(const std::vector<Fft>& transforms) {
    Random random;
    const cuda::Stream stream;
    for (const Fft& f : transforms) {
      const CufftPlan plan(f);
      expect_right(plan, random, scratch(plan.workspace()), stream);
    }
  }
};

TEST_F(Cufft, OneAxis) {
  const std::vector<Fft> sizes{
      {.batch = 2, .n = {2}, .rank = 1},   {.batch = 7, .n = {64}, .rank = 1}, {.batch = 3, .n = {100}, .rank = 1},
      {.batch = 5, .n = {735}, .rank = 1}, {.n = {8192}, .rank = 1},           {.batch = 2, .n = {1000}, .rank = 1}};
  expect_all_right(all_kinds(sizes, DType::fp32));
  expect_all_right(all_kinds({sizes[1], sizes[3]}, DType::fp64));
}

TEST_F(Cufft, PrimeLengths) {
  const std::vector<Fft> sizes{{.batch = 3, .n = {17}, .rank = 1},
                               {.batch = 2, .n = {127}, .rank = 1},
                               {.n = {1021}, .rank = 1},
                               {.n = {4099}, .rank = 1}};
  expect_all_right(all_kinds(sizes, DType::fp32));
  expect_all_right(all_kinds({sizes[1], sizes[2]}, DType::fp64));
}

TEST_F(Cufft, TwoAndThreeAxes) {
  expect_all_right(all_kinds({{.batch = 3, .n = {24, 24}, .rank = 2},
                              {.batch = 2, .n = {14, 31}, .rank = 2},
                              {.n = {7, 127}, .rank = 2},
                              {.n = {128, 96}, .rank = 2},
                              {.batch = 2, .n = {4, 6, 10}, .rank = 3}},
                             DType::fp32));
}

TEST_F(Cufft, HalfPrecision) {
  expect_all_right(
      all_kinds({{.batch = 4, .n = {64}, .rank = 1}, {.n = {4096}, .rank = 1}, {.batch = 2, .n = {16, 64}, .rank = 2}},
                DType::fp16));
}

TEST_F(Cufft, PlansShareOneWorkArea) {
  Random random;
  std::vector<CufftPlan> plans;
  Bytes most{};
  for (const Fft& f : {Fft{.batch = 4, .n = {4099}, .rank = 1}, Fft{.kind = Kind::r2c, .batch = 3, .n = {77, 91}},
                       Fft{.kind = Kind::c2r, .batch = 3, .n = {77, 91}}, Fft{.batch = 2, .n = {64, 64}}}) {
    most = std::max(most, plans.emplace_back(f).workspace());
  }
  EXPECT_GT(most, Bytes{}) << "no plan with a work area is among them";
  const cuda::Buffer area = scratch(most);
  const cuda::Stream stream;
  for (int round = 0; round < 2; ++round)
    for (const CufftPlan& plan : plans) expect_right(plan, random, area, stream);
}

TEST_F(Cufft, RunsFromAGraph) {
  Random random;
  const Fft f{.kind = Kind::r2c, .batch = 3, .n = {33, 45}};
  const CufftPlan plan(f);
  const cuda::Stream stream;
  const cuda::Buffer area = scratch(plan.workspace());
  const Input in(f.dtype, random.uniform(points(f).value()));
  const Output out(out_type(f), spectrum(f).value());
  plan({in.mutable_data(), out.data(), area.data()}, stream.get());
  stream.synchronize();
  cuda::poison(out.data(), output_bytes(f), stream.get());
  const cuda::Graph graph(stream.get(), [&] { plan({in.mutable_data(), out.data(), area.data()}, stream.get()); });
  EXPECT_GE(graph.nodes(), 1u);
  graph.launch(stream.get());
  stream.synchronize();
  expect_close(out.values(), reference::fft(f, in.values()), tolerance(DType::complex64));
}

TEST_F(Cufft, WorkAreasAreThosePredicted) {
  Random random;
  std::mt19937_64 engine(random.seed());
  const auto between = [&](std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine);
  };
  int measured = 0;
  for (int i = 0; i < 150; ++i) {
    Fft f{.kind = static_cast<Kind>(between(0, 2)), .batch = between(1, 40), .rank = static_cast<int>(between(1, 2))};
    for (int axis = 0; axis < f.rank; ++axis)
      f.n[static_cast<std::size_t>(axis)] = f.rank == 1 ? between(2, 9000) : between(2, 600);
    const FftWorkspace predicted = workspace(f);
    const CufftPlan plan(f);
    measured += predicted.measured;
    if (predicted.measured)
      EXPECT_EQ(plan.workspace().value(), predicted.bytes.value()) << spelt(f);
    else
      EXPECT_LE(plan.workspace(), workspace_limit(f)) << spelt(f);
  }
  EXPECT_GT(measured, 75) << "few of the lengths drawn are in the tables";
}

TEST(CufftLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_THROW(CufftPlan({.n = {16}, .rank = 1, .dtype = DType::bf16}), Error);
  EXPECT_THROW(CufftPlan({.n = {12}, .rank = 1, .dtype = DType::fp16}), Error);
  EXPECT_THROW(CufftPlan({.n = {16}, .rank = 1, .strided = true}), Error);
  EXPECT_THROW(CufftPlan({.n = {16}, .rank = 1, .scaled = true}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::fft_test
