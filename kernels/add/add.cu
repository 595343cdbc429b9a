// SPDX-License-Identifier: Apache-2.0
#include <kernels/add/add.hpp>
#include <kernels/cuda/binary.cuh>

namespace vlmest::kernels {
namespace {

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

}  // namespace

Add::Add(const Elementwise& op) : op_(op) {
  cuda::dispatch_wide(op.dtype, [](auto) {});
  if (op.kind != Elementwise::Kind::add) throw Error("add kernel", "the op is " + std::string(vlmest::name(op.kind)));
  if (op.elements < 1) throw Error("add kernel", "needs at least one element");
}

void Add::operator()(const AddOperands& o, cudaStream_t stream) const {
  cuda::launch_binary(op_.dtype, op_.elements, o.a, o.b, o.out, Plus{}, "add kernel", stream);
}

}  // namespace vlmest::kernels
