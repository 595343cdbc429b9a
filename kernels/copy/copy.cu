// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <kernels/copy/copy.hpp>
#include <kernels/cuda/check.hpp>
#include <kernels/cuda/word.cuh>

namespace vlmest::kernels {
namespace {

constexpr int threads = 256;
/// Words that a thread has in flight. 8 blocks on a multiprocessor: 128 KiB of loads.
constexpr int unrolled = 4;
/// Of the read stream, which keeps nothing: fewer threads, more of it each.
constexpr int unrolled_read = 8;
/// Below this many words a thread moves one, so that all multiprocessors have work.
constexpr std::int64_t small_copy = 1 << 18;

std::int64_t bytes_of(const Elementwise& op, Elementwise::Kind kind) {
  const std::string where = std::string(vlmest::name(kind)) + " kernel";
  if (op.kind != kind) throw Error(where, "the op is " + std::string(vlmest::name(op.kind)));
  if (bits(op.dtype) % 8 != 0)
    throw Error(where, "elements of " + std::to_string(bits(op.dtype)) + " bits", "use whole bytes");
  if (op.elements < 1) throw Error(where, "needs at least one element");
  return size_of(Elements(op.elements), op.dtype).value();
}

/// The bytes behind the last whole word are left to the first threads of the first block.
template <class Word>
__device__ std::int64_t own_rest(std::int64_t bytes) {
  const std::int64_t at = bytes / static_cast<std::int64_t>(sizeof(Word)) * static_cast<std::int64_t>(sizeof(Word));
  return blockIdx.x == 0 ? at + threadIdx.x : bytes;
}

template <int Unrolled, class Word>
__global__ void __launch_bounds__(threads)
    copy_words(const std::uint8_t* __restrict__ from, std::uint8_t* __restrict__ to, std::int64_t bytes) {
  const std::int64_t words = bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads * Unrolled) + threadIdx.x;
  Word moved[Unrolled];
#pragma unroll
  for (int u = 0; u < Unrolled; ++u)
    if (first + u * threads < words) moved[u] = reinterpret_cast<const Word*>(from)[first + u * threads];
#pragma unroll
  for (int u = 0; u < Unrolled; ++u)
    if (first + u * threads < words) reinterpret_cast<Word*>(to)[first + u * threads] = moved[u];
  if (const std::int64_t i = own_rest<Word>(bytes); i < bytes) to[i] = from[i];
}

/// `from` is aligned to 16 bytes.
__global__ void __launch_bounds__(threads, 4)
    read_words(const std::uint8_t* __restrict__ from, std::uint32_t* sums, std::int64_t bytes) {
  const std::int64_t words = bytes / 16;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads * unrolled_read) + threadIdx.x;
  uint4 read[unrolled_read];
#pragma unroll
  for (int u = 0; u < unrolled_read; ++u)
    read[u] = first + u * threads < words ? reinterpret_cast<const uint4*>(from)[first + u * threads]
                                          : make_uint4(0, 0, 0, 0);
  std::uint32_t sum = 0;
#pragma unroll
  for (const uint4& r : read) sum += r.x + r.y + r.z + r.w;
  if (blockIdx.x == 0 && threadIdx.x == 0) {  // fewer than 16 bytes are left
    std::int64_t i = words * 16;
    for (; i + 4 <= bytes; i += 4) sum += *reinterpret_cast<const std::uint32_t*>(from + i);
    for (; i < bytes; ++i) sum += from[i];
  }
  __shared__ std::uint32_t of_warp[threads / 32];
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
#pragma unroll
  for (const std::uint32_t s : of_warp) sum += s;
  sums[blockIdx.x] = sum;
}

/// `to` is aligned to 16 bytes.
template <int Unrolled>
__global__ void __launch_bounds__(threads) write_words(std::uint8_t* to, std::int64_t bytes, std::uint32_t seed) {
  const std::int64_t words = bytes / 16;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads * Unrolled) + threadIdx.x;
#pragma unroll
  for (int u = 0; u < Unrolled; ++u) {
    const std::int64_t i = first + u * threads;
    const auto at = static_cast<std::uint64_t>(i) * 4;
    if (i < words)
      reinterpret_cast<uint4*>(to)[i] = make_uint4(written_word(at, seed), written_word(at + 1, seed),
                                                   written_word(at + 2, seed), written_word(at + 3, seed));
  }
  if (const std::int64_t i = own_rest<uint4>(bytes); i < bytes)
    to[i] = static_cast<std::uint8_t>(written_word(static_cast<std::uint64_t>(i) / 4, seed) >> (i % 4 * 8));
}

/// Blocks of `each` words a thread; one at least, for the rest.
unsigned blocks_for(std::int64_t words, int each, const char* where) {
  const std::int64_t blocks = cuda::ceil_div(words, static_cast<std::int64_t>(threads) * each);
  return cuda::grid(blocks > 0 ? blocks : 1, where);
}

void aligned(const void* address, const char* where) {
  if (cuda::aligned_bytes(0, {address}) < 16)
    throw Error(where, "an address that is no multiple of 16", "pass what cudaMalloc returned");
}

}  // namespace

StreamCopy::StreamCopy(const Elementwise& op) : bytes_(bytes_of(op, Elementwise::Kind::copy)) {}

void StreamCopy::operator()(const CopyOperands& o, cudaStream_t stream) const {
  cuda::dispatch_word(cuda::aligned_bytes(0, {o.from, o.to}), [&](auto word) {
    using Word = typename decltype(word)::type;
    const std::int64_t words = bytes_ / static_cast<std::int64_t>(sizeof(Word));
    const auto launch = [&](auto each) {
      copy_words<each, Word><<<blocks_for(words, each, "copy kernel"), threads, 0, stream>>>(
          static_cast<const std::uint8_t*>(o.from), static_cast<std::uint8_t*>(o.to), bytes_);
    };
    if (words <= small_copy)
      launch(std::integral_constant<int, 1>{});
    else
      launch(std::integral_constant<int, unrolled>{});
  });
  cuda::check(cudaGetLastError());
}

MemcpyCopy::MemcpyCopy(const Elementwise& op) : bytes_(bytes_of(op, Elementwise::Kind::copy)) {}

void MemcpyCopy::operator()(const CopyOperands& o, cudaStream_t stream) const {
  cuda::check(cudaMemcpyAsync(o.to, o.from, static_cast<std::size_t>(bytes_), cudaMemcpyDeviceToDevice, stream));
}

StreamRead::StreamRead(const Elementwise& op) : bytes_(bytes_of(op, Elementwise::Kind::read)) {}

Bytes StreamRead::workspace() const {
  return size_of(Elements(blocks_for(bytes_ / 16, unrolled_read, "read kernel")), DType::int32);
}

void StreamRead::operator()(const ReadOperands& o, cudaStream_t stream) const {
  aligned(o.from, "read kernel");
  read_words<<<blocks_for(bytes_ / 16, unrolled_read, "read kernel"), threads, 0, stream>>>(
      static_cast<const std::uint8_t*>(o.from), o.sums, bytes_);
  cuda::check(cudaGetLastError());
}

StreamWrite::StreamWrite(const Elementwise& op) : bytes_(bytes_of(op, Elementwise::Kind::write)) {}

void StreamWrite::operator()(const WriteOperands& o, cudaStream_t stream) const {
  aligned(o.to, "write kernel");
  const std::int64_t words = bytes_ / 16;
  const auto launch = [&](auto each) {
    write_words<each><<<blocks_for(words, each, "write kernel"), threads, 0, stream>>>(static_cast<std::uint8_t*>(o.to),
                                                                                       bytes_, o.seed);
  };
  if (words <= small_copy)
    launch(std::integral_constant<int, 1>{});
  else
    launch(std::integral_constant<int, unrolled>{});
  cuda::check(cudaGetLastError());
}

}  // namespace vlmest::kernels
