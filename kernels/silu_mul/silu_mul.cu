// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/binary.cuh>
#include <kernels/silu_mul/silu_mul.hpp>

namespace vlmest::kernels {
namespace {

struct Gate {
  __device__ float operator()(float gate, float up) const { return __fdividef(gate, 1 + __expf(-gate)) * up; }
};

}  // namespace

SiluMul::SiluMul(const Elementwise& op) : op_(op) {
  cuda::dispatch_wide(op.dtype, [](auto) {});
  if (op.kind != Elementwise::Kind::silu_mul)
    throw Error("silu_mul kernel", "the op is " + std::string(vlmest::name(op.kind)));
  if (op.elements < 1) throw Error("silu_mul kernel", "needs at least one element");
}

void SiluMul::operator()(const SiluMulOperands& o, cudaStream_t stream) const {
  cuda::launch_binary(op_.dtype, op_.elements, o.gate, o.up, o.out, Gate{}, "silu_mul kernel", stream);
}

}  // namespace vlmest::kernels
