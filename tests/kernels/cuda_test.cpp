// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <kernels/cuda/check_cublas.hpp>
#include <kernels/cuda/check_cufft.hpp>
#include <kernels/cuda/counter_random.cuh>
#include <kernels/cuda/event.hpp>
#include <kernels/cuda/fill.hpp>
#include <kernels/cuda/graph.hpp>

#include "device_tensor.hpp"

namespace vlmest::kernels::cuda_test {
namespace {

class Fill : public DeviceTest {};
class Streams : public DeviceTest {};

TEST(CheckCuda, NamesPlaceErrorAndRemedy) {
  EXPECT_NO_THROW(cuda::check(cudaSuccess));
  try {
    cuda::check(cudaErrorMemoryAllocation);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.where.substr(0, e.where.find(':')), "cuda_test.cpp");
    EXPECT_NE(e.what_happened.find("cudaErrorMemoryAllocation"), std::string::npos);
    EXPECT_FALSE(e.hint.empty());
  }
  EXPECT_THROW(cuda::check(CUBLAS_STATUS_NOT_INITIALIZED), Error);
  EXPECT_THROW(cuda::check(CUFFT_INTERNAL_ERROR), Error);
}

TEST(CounterRandom, IsUniformAndDiffersBetweenSeeds) {
  double sum = 0;
  double squares = 0;
  double product = 0;
  constexpr int n = 100'000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = cuda::uniform(7, i);
    ASSERT_TRUE(x >= 0 && x < 1);
    sum += x - 0.5;
    squares += (x - 0.5) * (x - 0.5);
    product += (x - 0.5) * (cuda::uniform(8, i) - 0.5);
  }
  // Five standard deviations of each mean.
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
  EXPECT_NEAR(product / n, 0, 5.0 / 12 / std::sqrt(n));
  // Nor is one a shifted copy of the other.
  EXPECT_NE(cuda::random_bits(7, 1), cuda::random_bits(8, 0));
}

TEST(CounterRandom, IndicesStayBelowTheirBound) {
  std::array<int, 10> seen{};
  for (std::uint64_t i = 0; i < 10'000; ++i) ++seen.at(cuda::uniform_index(3, i, 10));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(cuda::uniform_index(3, 5, 1), 0u);
}

TEST_F(Fill, GivesTheSequenceOfItsSeed) {
  const cuda::Stream stream;
  for (const DType t : {DType::fp64, DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::complex64}) {
    SCOPED_TRACE(std::string(name(t)));
    const std::int64_t n = 3'000'001;  // more than one round of the kernel's loop
    const Output out(t, n);
    cuda::fill_uniform(out.data(), Elements(n), t, -2, 3, 11, stream.get());
    stream.synchronize();
    const auto values = out.values();
    const Input expected = [&] {
      std::vector<double> host(values.size());
      for (std::size_t i = 0; i < host.size(); ++i) host[i] = -2 + 5 * cuda::uniform(11, i);
      return Input(t, host);
    }();
    // The device may fuse the multiplication and the addition: one unit in the last place of fp32 before rounding.
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - expected.values()[i]));
    EXPECT_LE(worst, t == DType::fp8 ? 0.25 : t == DType::bf16 ? 0.016 : t == DType::fp16 ? 0.002 : 5e-7);
    EXPECT_NE(values.front(), values.back());
  }
}

TEST_F(Fill, IndicesReachAllOfTheirRange) {
  const cuda::Stream stream;
  for (const DType t : {DType::int64, DType::int32}) {
    const std::int64_t n = 100'000;
    const cuda::Buffer buffer = scratch(size_of(Elements(n), t));
    cuda::fill_indices(buffer.data(), Elements(n), t, 100, 5, stream.get());
    stream.synchronize();
    std::vector<std::int64_t> wide(n);
    std::vector<std::int32_t> narrow(n);
    void* const host = t == DType::int64 ? static_cast<void*>(wide.data()) : static_cast<void*>(narrow.data());
    cuda::check(
        cudaMemcpy(host, buffer.data(), static_cast<std::size_t>(buffer.size().value()), cudaMemcpyDeviceToHost));
    if (t == DType::int32) wide.assign(narrow.begin(), narrow.end());
    EXPECT_EQ(*std::min_element(wide.begin(), wide.end()), 0);
    EXPECT_EQ(*std::max_element(wide.begin(), wide.end()), 99);
  }
  EXPECT_THROW(cuda::fill_indices(nullptr, Elements(1), DType::int64, 0, 5, stream.get()), Error);
  EXPECT_THROW(cuda::fill_indices(nullptr, Elements(1), DType::fp32, 10, 5, stream.get()), Error);
}

TEST_F(Fill, PoisonIsNotANumber) {
  const cuda::Stream stream;
  for (const DType t : {DType::fp64, DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
    const Output out(t, 100);
    cuda::fill_uniform(out.data(), Elements(100), t, 0, 1, 1, stream.get());
    cuda::poison(out.data(), size_of(Elements(100), t), stream.get());
    stream.synchronize();
    for (const double v : out.values()) EXPECT_TRUE(std::isnan(v)) << name(t);
  }
}

TEST_F(Streams, AGraphDoesItsWorkWhenLaunchedOnly) {
  const cuda::Stream stream;
  const Output out(DType::fp32, 1000);
  cuda::fill_uniform(out.data(), Elements(1000), DType::fp32, 1, 2, 3, stream.get());
  cuda::poison(out.data(), size_of(Elements(1000), DType::fp32), stream.get());
  const cuda::Graph graph(stream.get(),
                          [&] { cuda::fill_uniform(out.data(), Elements(1000), DType::fp32, 1, 2, 3, stream.get()); });
  EXPECT_EQ(graph.nodes(), 1u);
  stream.synchronize();
  EXPECT_TRUE(std::isnan(out.values().front()));
  graph.launch(stream.get());
  stream.synchronize();
  for (const double v : out.values()) EXPECT_TRUE(v >= 1 && v <= 2);
}

TEST_F(Streams, AFailureWhileRecordingLeavesTheStreamUsable) {
  const cuda::Stream stream;
  EXPECT_THROW(cuda::Graph(stream.get(), [] { throw Error("test", "on purpose"); }), Error);
  const Output out(DType::fp32, 10);
  cuda::fill_uniform(out.data(), Elements(10), DType::fp32, 1, 2, 3, stream.get());
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_FALSE(std::isnan(out.values().front()));
}

TEST_F(Streams, EventsMeasureTime) {
  const cuda::Stream stream;
  const cuda::Event begin;
  const cuda::Event end;
  const cuda::Buffer buffer(Bytes(64 << 20));
  cuda::poison(buffer.data(), buffer.size(), stream.get());
  begin.record(stream.get());
  for (int i = 0; i < 10; ++i) cuda::poison(buffer.data(), buffer.size(), stream.get());
  end.record(stream.get());
  end.synchronize();
  // 640 MiB at 100 TB/s would take 7 us, at 1 GB/s 0.7 s.
  EXPECT_GT(cuda::elapsed(begin, end), Seconds{6e-6});
  EXPECT_LT(cuda::elapsed(begin, end), Seconds{1});
}

TEST(Buffer, OfNothingNeedsNoDevice) {
  const cuda::Buffer empty(Bytes(0));
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(empty.size(), Bytes{});
  EXPECT_THROW(cuda::Buffer(Bytes(-1)), Error);
}

}  // namespace
}  // namespace vlmest::kernels::cuda_test
