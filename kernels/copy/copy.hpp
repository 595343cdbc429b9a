// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/elementwise.hpp>

/// Copies, and streams that only read or only write: the ceilings of every kernel that is bound by memory. They move
/// bytes, so every type of whole bytes is taken.
namespace vlmest::kernels {

struct CopyOperands {
  const void* from = nullptr;
  void* to = nullptr;  ///< does not overlap `from`
};

/// A copy by the multiprocessors.
class StreamCopy {
 public:
  /// Throws Error for another kind than copy, and for half bytes.
  explicit StreamCopy(const Elementwise& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const CopyOperands& operands, cudaStream_t stream) const;

 private:
  std::int64_t bytes_;
};

/// A copy by cudaMemcpyAsync, the vendor's.
class MemcpyCopy {
 public:
  /// Throws Error for another kind than copy, and for half bytes.
  explicit MemcpyCopy(const Elementwise& op);

  std::string_view name() const { return "memcpy"; }
  Bytes workspace() const { return {}; }
  void operator()(const CopyOperands& operands, cudaStream_t stream) const;

 private:
  std::int64_t bytes_;
};

struct ReadOperands {
  const void* from = nullptr;
  std::uint32_t* sums = nullptr;  ///< workspace() bytes
};

/// Reads everything and leaves the sum of the 32-bit words of each block of 32 KiB (a rest of fewer than 4 bytes counts
/// byte by byte), so that nothing of it can be left out: the sums add up to the sum of all words, modulo 2^32.
class StreamRead {
 public:
  /// Throws Error for another kind than read, and for half bytes.
  explicit StreamRead(const Elementwise& op);

  std::string_view name() const { return "own"; }
  /// The sums, which the caller provides: 4 bytes for every 32 KiB.
  Bytes workspace() const;
  void operator()(const ReadOperands& operands, cudaStream_t stream) const;

 private:
  std::int64_t bytes_;
};

struct WriteOperands {
  void* to = nullptr;
  std::uint32_t seed = 0;
};

/// Writes written_word(i, seed) as the i-th 32-bit word; a rest of fewer than 4 bytes takes the first bytes of the next
/// word. Not a constant: memory may treat constant data better than it deserves.
class StreamWrite {
 public:
  /// Throws Error for another kind than write, and for half bytes.
  explicit StreamWrite(const Elementwise& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const WriteOperands& operands, cudaStream_t stream) const;

 private:
  std::int64_t bytes_;
};

/// Multiples of the golden ratio modulo 2^32 (Knuth, The Art of Computer Programming, volume 3, section 6.4).
__host__ __device__ constexpr std::uint32_t written_word(std::uint64_t i, std::uint32_t seed) {
  return (static_cast<std::uint32_t>(i) + seed) * 0x9e3779b1u;
}

}  // namespace vlmest::kernels
