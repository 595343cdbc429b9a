// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <bench/op/prepare.hpp>
#include <bench/op/table.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/fft/cufft_plan.hpp>

namespace vlmest::bench {

/// cufft: the plan that torch makes. A c2r destroys its input, so that torch copies it first; so does this.
Prepared prepare_fft(const Point& p, cudaStream_t) {
  const Fft op = std::get<Fft>(read_op(p, 90).op);
  const auto plan = std::make_shared<kernels::CufftPlan>(op);
  const bool to_real = op.kind == Fft::Kind::c2r;
  const DType complex = complex_of(op.dtype);
  const Operand real = input(points(op), op.dtype), spectral = input(spectrum(op), complex);

  Prepared r;
  r.operands = {op.kind == Fft::Kind::r2c ? real : spectral,
                output(to_real ? points(op) : spectrum(op), to_real ? op.dtype : complex)};
  if (to_real) r.operands.push_back(output(spectrum(op), complex));
  r.workspace = plan->workspace();
  r.launches = 16;  // a large prime takes many kernels
  const auto bytes = static_cast<std::size_t>(spectral.size().value());
  r.call = [plan, to_real, bytes](std::span<void* const> x, void* workspace, cudaStream_t s) {
    if (to_real) cuda::check(cudaMemcpyAsync(x[2], x[0], bytes, cudaMemcpyDeviceToDevice, s));
    (*plan)({.in = to_real ? x[2] : x[0], .out = x[1], .workspace = workspace}, s);
  };
  return r;
}

}  // namespace vlmest::bench
