// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/cuda/buffer.hpp>
#include <kernels/cuda/device.hpp>
#include <kernels/cuda/element.cuh>
#include <kernels/cuda/stream.hpp>

#include <vlmest/tensor/dtype.hpp>

#include "compare.hpp"
#include "tolerance.hpp"

namespace vlmest::kernels {

/// Base of every test that runs kernels.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::available()) GTEST_SKIP() << "no CUDA device";
  }
  /// What went wrong on the device belongs to the test that started it, not to the next one.
  void TearDown() override {
    if (!cuda::available()) return;
    const cudaError_t status = cudaDeviceSynchronize();
    EXPECT_EQ(status, cudaSuccess) << cudaGetErrorName(status) << ", " << cudaGetErrorString(status);
  }
};

/// As dispatch of element.cuh, with double for fp64; complex types are taken as their parts.
template <class F>
decltype(auto) dispatch_part(DType t, F&& f) {
  if (t == DType::fp64 || t == DType::complex128) return std::forward<F>(f)(cuda::Type<double>{});
  if (t == DType::complex64) return std::forward<F>(f)(cuda::Type<float>{});
  if (t == DType::complex32) return std::forward<F>(f)(cuda::Type<cuda::fp16>{});
  return cuda::dispatch(t, std::forward<F>(f));
}

/// An input: what the device holds and, in double, what that is after rounding to the type, for the reference. A
/// complex tensor is given as pairs, real part first.
class Input {
 public:
  Input(DType t, std::span<const double> values) : values_(values.begin(), values.end()) {
    dispatch_part(t, [&](auto type) {
      using T = typename decltype(type)::type;
      std::vector<T> rounded(values_.size());
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        if constexpr (std::is_same_v<T, double>)
          rounded[i] = values_[i];
        else {
          rounded[i] = cuda::from_float<T>(static_cast<float>(values_[i]));
          values_[i] = cuda::to_float(rounded[i]);
        }
      }
      upload(rounded.data(), rounded.size() * sizeof(T));
    });
  }
  /// Indices, as torch has them: int64.
  explicit Input(std::span<const std::int64_t> indices) { upload(indices.data(), indices.size_bytes()); }

  const void* data() const { return buffer_.data(); }
  /// For the few calls that destroy their input.
  void* mutable_data() const { return buffer_.data(); }
  std::span<const double> values() const { return values_; }

 private:
  void upload(const void* from, std::size_t bytes) {
    buffer_ = cuda::Buffer(Bytes(bytes));
    if (bytes > 0) cuda::check(cudaMemcpy(buffer_.data(), from, bytes, cudaMemcpyHostToDevice));
    cuda::check(cudaDeviceSynchronize());  // the copy may return before it ends, and no stream here waits for it
  }

  std::vector<double> values_;
  cuda::Buffer buffer_;
};

/// An output, poisoned when made: an element that the kernel leaves out reads as NaN. Behind it lies a guard, equally
/// poisoned, that must stay as it is.
class Output {
 public:
  Output(DType t, std::int64_t n) : dtype_(t), bytes_(size_of(Elements(n), t)), buffer_(bytes_ + guard) {
    cuda::check(cudaMemset(buffer_.data(), 0xFF, static_cast<std::size_t>(buffer_.size().value())));
    cuda::check(cudaDeviceSynchronize());
  }

  void* data() const { return buffer_.data(); }
  /// Waits for all work of the device. Complex values come as pairs.
  std::vector<double> values() const {
    cuda::check(cudaDeviceSynchronize());
    std::vector<std::byte> raw(static_cast<std::size_t>(buffer_.size().value()));
    cuda::check(cudaMemcpy(raw.data(), buffer_.data(), raw.size(), cudaMemcpyDeviceToHost));
    const auto used = static_cast<std::size_t>(bytes_.value());
    for (std::size_t i = used; i < raw.size(); ++i)
      if (raw[i] != std::byte{0xFF}) {
        ADD_FAILURE() << "the kernel wrote " << i - used << " bytes behind the end of its output";
        break;
      }
    std::vector<double> r;
    dispatch_part(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      std::vector<T> typed(used / sizeof(T));
      std::memcpy(static_cast<void*>(typed.data()), raw.data(), used);
      r.reserve(typed.size());
      for (const T& v : typed) {
        if constexpr (std::is_same_v<T, double>)
          r.push_back(v);
        else
          r.push_back(cuda::to_float(v));
      }
    });
    return r;
  }

 private:
  static constexpr Bytes guard{4096};
  DType dtype_;
  Bytes bytes_;
  cuda::Buffer buffer_;
};

/// Scratch that starts as NaN, so that a kernel which reads it before writing shows.
inline cuda::Buffer scratch(Bytes size) {
  cuda::Buffer r(size);
  if (size > Bytes{}) cuda::check(cudaMemset(r.data(), 0xFF, static_cast<std::size_t>(size.value())));
  cuda::check(cudaDeviceSynchronize());
  return r;
}

}  // namespace vlmest::kernels
