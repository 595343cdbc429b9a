// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/diagnose/evidence/oom/facts.hpp>

namespace vlmest::diagnose {

/// Facts of one message: those of [first, last) in the list of facts.
struct OomGroup {
  OomMessage message;
  std::size_t begin = 0, end = 0;  ///< in the squeezed text
};

namespace oom_group {

/// Words between two facts of one message at most: the hints that follow "reserved in total by PyTorch" are longer,
/// and nothing stands behind them. The collapsed lines of cudaMallocAsync are shorter.
inline constexpr std::size_t reach = 420;

std::optional<PrintedSize>* figure(OomMessage& m, OomField f);

/// Whether two readings of one figure can be the same number: ggml prints MiB and, a line later, bytes.
inline bool agree(const PrintedSize& a, const PrintedSize& b) { return a.low <= b.high && b.low <= a.high; }

constexpr bool in_torch(MemoryBackend b) {
  return b == MemoryBackend::unknown || b == MemoryBackend::cuda || b == MemoryBackend::hip ||
         b == MemoryBackend::xpu || b == MemoryBackend::npu || b == MemoryBackend::mps;
}

/// A begin is more telling than unknown; among others the later in the list of beginnings wins where the first was
/// torch's plain word.
inline MemoryBackend better(MemoryBackend a, MemoryBackend b) {
  if (a == MemoryBackend::unknown) return b;
  if (b == MemoryBackend::unknown || a == b) return a;
  if (a == MemoryBackend::ggml && b == MemoryBackend::host) return b;  // its buffers in pinned memory
  return a == MemoryBackend::cuda || (a == MemoryBackend::cuda_driver && b == MemoryBackend::nccl) ? b : a;
}

}  // namespace oom_group

/// Cuts a list of facts into messages. A new one begins with the words of a beginning once figures have been read, with
/// a figure that is already there and differs, and after a long gap. What remains has a figure that only such a message
/// has, or words that are one by themselves.
std::vector<OomGroup> group_oom_facts(const std::vector<OomFact>& facts);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/group.hpp>
#endif
