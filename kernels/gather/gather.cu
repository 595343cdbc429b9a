// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <kernels/cuda/check.hpp>
#include <kernels/cuda/word.cuh>
#include <kernels/gather/gather.hpp>

namespace vlmest::kernels {
namespace {

constexpr int block = 128;
/// Words that a thread has in flight. A row's number must arrive before its words can be asked for, so many small
/// blocks do better than few large ones.
constexpr int unrolled = 4;

/// blockDim.x threads share a row or a part of it (blockIdx.y), blockDim.y rows share a block.
template <class Word>
__global__ void __launch_bounds__(block)
    gather_rows(const Word* __restrict__ table, const std::int64_t* __restrict__ index, Word* __restrict__ out,
                std::int64_t rows, std::int64_t words, std::int64_t table_rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const std::int64_t from = index[row];
  const bool known = from >= 0 && from < table_rows;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x * unrolled + threadIdx.x;
  Word moved[unrolled];
#pragma unroll
  for (int u = 0; u < unrolled; ++u) {
    const std::int64_t i = first + u * static_cast<std::int64_t>(blockDim.x);
    if (i < words) moved[u] = known ? table[from * words + i] : cuda::all_ones<Word>();
  }
#pragma unroll
  for (int u = 0; u < unrolled; ++u) {
    const std::int64_t i = first + u * static_cast<std::int64_t>(blockDim.x);
    if (i < words) out[row * words + i] = moved[u];
  }
}

}  // namespace

RowGather::RowGather(const Gather& op) : op_(op) {
  if (bits(op.dtype) % 8 != 0)
    throw Error("gather kernel", "elements of " + std::to_string(bits(op.dtype)) + " bits", "use whole bytes");
  if (op.index != DType::int64)
    throw Error("gather kernel", "indices of " + std::string(vlmest::name(op.index)), "use int64");
  if (op.rows < 1 || op.width < 1 || op.table_rows < 1) throw Error("gather kernel", "needs rows, a width and a table");
}

void RowGather::operator()(const GatherOperands& o, cudaStream_t stream) const {
  const std::int64_t bytes = size_of(Elements(op_.width), op_.dtype).value();
  cuda::dispatch_word(cuda::aligned_bytes(bytes, {o.table, o.out}), [&](auto word) {
    using Word = typename decltype(word)::type;
    const std::int64_t words = bytes / static_cast<std::int64_t>(sizeof(Word));
    const std::int64_t wanted = cuda::ceil_div(words, unrolled);
    const auto x = static_cast<unsigned>(wanted >= block ? block : std::bit_ceil(static_cast<std::uint64_t>(wanted)));
    const dim3 threads(x, block / x);
    const std::int64_t parts = cuda::ceil_div(words, static_cast<std::int64_t>(x) * unrolled);
    if (parts > 65535)
      throw Error("gather kernel", "rows of " + std::to_string(bytes) + " bytes", "take narrower rows");
    const dim3 blocks(cuda::grid(cuda::ceil_div(op_.rows, threads.y), "gather kernel"), static_cast<unsigned>(parts));
    gather_rows<Word><<<blocks, threads, 0, stream>>>(static_cast<const Word*>(o.table), o.index,
                                                      static_cast<Word*>(o.out), op_.rows, words, op_.table_rows);
  });
  cuda::check(cudaGetLastError());
}

}  // namespace vlmest::kernels
