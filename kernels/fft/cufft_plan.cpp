// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <cufftXt.h>
#include <kernels/cuda/check_cufft.hpp>
#include <kernels/fft/cufft_plan.hpp>

namespace vlmest::kernels {
namespace {

using cuda::check;

struct Types {
  cudaDataType real;
  cudaDataType complex;
};

Types types_of(DType t) {
  switch (t) {
    case DType::fp16: return {CUDA_R_16F, CUDA_C_16F};
    case DType::fp64: return {CUDA_R_64F, CUDA_C_64F};
    default: return {CUDA_R_32F, CUDA_C_32F};  // check(Fft) let nothing else through
  }
}

}  // namespace

CufftPlan::CufftPlan(const Fft& op) : op_(op) {
  vlmest::check(op);
  if (op.strided || op.copied || op.scaled)
    throw Error("fft", "a plan for contiguous data alone", "leave out strided, copied and scaled");
  const Types types = types_of(op.dtype);
  std::array<long long, 3> n{};
  for (int i = 0; i < op.rank; ++i) n[static_cast<std::size_t>(i)] = op.n[static_cast<std::size_t>(i)];
  check(cufftCreate(&plan_));
  try {
    check(cufftSetAutoAllocation(plan_, 0));
    std::size_t bytes = 0;
    // Without embeddings cuFFT takes both sides as contiguous and ignores strides and distances.
    check(cufftXtMakePlanMany(plan_, op.rank, n.data(), nullptr, 1, 1,
                              op.kind == Fft::Kind::r2c ? types.real : types.complex, nullptr, 1, 1,
                              op.kind == Fft::Kind::c2r ? types.real : types.complex, op.batch, &bytes, types.complex));
    workspace_ = Bytes(bytes);
  } catch (...) {
    static_cast<void>(cufftDestroy(plan_));
    throw;
  }
}

CufftPlan::~CufftPlan() {
  if (plan_ != none) static_cast<void>(cufftDestroy(plan_));
}

void CufftPlan::operator()(const FftOperands& operands, cudaStream_t stream) const {
  check(cufftSetStream(plan_, stream));
  check(cufftSetWorkArea(plan_, operands.workspace));
  const bool inverse = op_.kind == Fft::Kind::c2r || (op_.kind == Fft::Kind::c2c && op_.inverse);
  check(cufftXtExec(plan_, operands.in, operands.out, inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
}

}  // namespace vlmest::kernels
