// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/diagnose/evidence/oom/message.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// What follows from the figures of an out-of-memory message. An empty result: the message does not say enough.
/// Source of the relations: c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator::malloc.
namespace vlmest::diagnose {

/// What torch holds from the device: as printed (up to 2.0), or allocated + unallocated (from 2.1). Private pools
/// cancel out of that sum.
inline std::optional<PrintedSize> reserved(const OomMessage& m) {
  if (m.reserved) return m.reserved;
  if (m.allocated && m.reserved_unallocated) return *m.allocated + *m.reserved_unallocated;
  return std::nullopt;
}

/// Bytes of tensors. Free blocks of private pools (CUDA graphs, vLLM's sleep mode) are printed as allocated.
inline std::optional<PrintedSize> allocated(const OomMessage& m) {
  if (!m.allocated || !m.private_pools) return m.allocated;
  return *m.allocated - *m.private_pools;
}

/// Cached bytes that the failed request could be served from: those of private pools are not among them.
inline std::optional<PrintedSize> unallocated(const OomMessage& m) {
  if (m.reserved_unallocated) return m.reserved_unallocated;
  if (m.reserved && m.allocated) return *m.reserved - *m.allocated;
  return std::nullopt;
}

/// All cached bytes, those of private pools included.
inline std::optional<PrintedSize> unallocated_everywhere(const OomMessage& m) {
  auto u = unallocated(m);
  if (u && m.private_pools && m.reserved_unallocated) u = *u + *m.private_pools;
  return u;
}

/// Of this process but not of torch's allocator: the context, NCCL's buffers, libraries.
inline std::optional<PrintedSize> non_torch(const OomMessage& m) {
  const auto r = reserved(m);
  if (!m.own_process || !r) return std::nullopt;
  return *m.own_process - *r;
}

/// On the device, but of neither this process nor free: other processes, and what the driver keeps for itself.
inline std::optional<PrintedSize> other_processes(const OomMessage& m) {
  if (m.total && m.free && m.own_process) return *m.total - *m.free - *m.own_process;
  if (m.processes.empty()) return std::nullopt;
  PrintedSize sum{};
  for (const auto& p : m.processes) sum = sum + p.in_use;
  return sum;
}

/// In use on the device and not reserved by this process's torch; an upper bound of other_processes where the message
/// does not tell whose it is.
inline std::optional<PrintedSize> not_torch(const OomMessage& m) {
  const auto r = reserved(m);
  if (!m.total || !m.free || !r) return std::nullopt;
  return *m.total - *m.free - *r;
}

/// Whether the failure is one of fragmentation, with the figures that say so.
struct FragmentationTest {
  PrintedSize requested, unallocated;
  std::optional<PrintedSize> free;
  /// Cached blocks held as much as was asked for, but none was that large.
  bool fragmented = false;
  /// Cached blocks together with what the device had free would have been enough.
  bool together_enough = false;
  /// What was missing even with both: 0 where together_enough.
  Bytes shortage;
};

/// Decided by the printed values; `fragmented` only where the intervals leave no doubt.
std::optional<FragmentationTest> fragmentation(const OomMessage& m);

/// A CUDA context, NCCL's buffers and the libraries of one process: hardly more than this, on the largest device.
inline constexpr Bytes context_at_most(std::int64_t{4} << 30);

/// In containers this process is listed as "Process N" like any other. It is taken for this one where the device could
/// not hold another process of that size beside what torch has reserved here; or where it alone is larger than that
/// reservation by what a CUDA context and its libraries take, 0.1 to 4 GiB. Then it moves to own_process.
void guess_own_process(OomMessage& m);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/figures.hpp>
#endif
