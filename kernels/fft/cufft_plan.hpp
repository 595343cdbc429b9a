// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include <cufft.h>

#include <vlmest/op/fft.hpp>

namespace vlmest::kernels {

/// Device addresses. Contiguous, batch first: input_bytes() and output_bytes() of the op, complex values as pairs.
struct FftOperands {
  void* in = nullptr;  ///< destroyed by a c2r, kept otherwise
  void* out = nullptr;
  void* workspace = nullptr;  ///< workspace() bytes; calls that do not overlap in time may share one area
};

/// One cuFFT plan as a prepared call, made as torch 2.11 makes its plans (ATen/native/cuda/CuFFTPlanCache.h): 64-bit
/// sizes, contiguous layout, no work area of its own. Nothing is scaled. Tables of the plan stay on the device until it
/// is destroyed. Not safe for calls from several threads at once.
class CufftPlan {
 public:
  /// Throws Error for what cuFFT cannot do (see check(Fft)), and for an op that is strided, copied or scaled: strides
  /// are not part of an Fft, and copies and scaling are kernels of the framework.
  explicit CufftPlan(const Fft& op);
  CufftPlan(CufftPlan&& other) noexcept
      : op_(other.op_), plan_(std::exchange(other.plan_, none)), workspace_(other.workspace_) {}
  CufftPlan& operator=(CufftPlan&& other) noexcept {
    std::swap(op_, other.op_);
    std::swap(plan_, other.plan_);
    std::swap(workspace_, other.workspace_);
    return *this;
  }
  ~CufftPlan();

  /// The plan's own answer, which vlmest::workspace(Fft) predicts. The area is the caller's.
  Bytes workspace() const { return workspace_; }
  std::string_view name() const { return "cufft"; }
  const Fft& op() const { return op_; }

  void operator()(const FftOperands& operands, cudaStream_t stream) const;

 private:
  static constexpr cufftHandle none = -1;
  Fft op_;
  cufftHandle plan_ = none;
  Bytes workspace_{};
};

}  // namespace vlmest::kernels
