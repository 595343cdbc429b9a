// SPDX-License-Identifier: Apache-2.0
#include <bench/harness/operands.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/cuda/fill.hpp>

namespace vlmest::bench {
namespace {

/// Sets lie this far apart, so that every address is aligned as cudaMalloc's are.
Bytes stride(const Operand& o) {
  const std::int64_t n = (o.size().value() + 255) / 256 * 256;
  return Bytes(n > 0 ? n : 256);
}

void fill(const Operand& o, void* data, Bytes size, std::uint64_t seed, cudaStream_t stream) {
  if (o.output) return cuda::poison(data, size, stream);
  const Elements n(size.value() / (bits(o.dtype) / 8));
  if (o.indices > 0) return cuda::fill_indices(data, n, o.dtype, o.indices, seed, stream);
  cuda::fill_uniform(data, n, o.dtype, o.low, o.high, seed, stream);
}

}  // namespace

OperandSets::OperandSets(const Prepared& prepared, std::int64_t sets, Pool& pool, std::uint64_t seed,
                         cudaStream_t stream)
    : sets_(sets), operands_(prepared.operands.size()) {
  addresses_.resize(static_cast<std::size_t>(sets) * operands_);
  for (std::size_t i = 0; i < operands_; ++i) {
    const Operand& o = prepared.operands[i];
    const Bytes each = stride(o);
    blocks_.emplace_back(pool, each * sets, stream);
    // The gaps between sets are filled, too: one launch instead of one for each set.
    fill(o, blocks_.back().data(), each * sets, seed + i, stream);
    for (std::int64_t s = 0; s < sets; ++s)
      addresses_[static_cast<std::size_t>(s) * operands_ + i] =
          static_cast<std::byte*>(blocks_.back().data()) + (each * s).value();
  }
  workspace_ = PoolBuffer(pool, prepared.workspace, stream);
}

Bytes measured_memory(const Prepared& prepared, Pool& pool, cudaStream_t stream) {
  cuda::check(cudaStreamSynchronize(stream));  // what was given back before no longer counts
  pool.reset_high_water();
  const Bytes before = pool.used();
  std::vector<PoolBuffer> buffers;
  for (const Operand& o : prepared.operands) buffers.emplace_back(pool, o.size(), stream);
  buffers.emplace_back(pool, prepared.workspace, stream);
  return pool.high_water() - before;
}

}  // namespace vlmest::bench
