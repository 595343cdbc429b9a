// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/cause.hpp>
#include <vlmest/diagnose/inversion/tensor_sizes.hpp>
#include <vlmest/diagnose/oom/oom_figures.hpp>
#include <vlmest/diagnose/oom/oom_message.hpp>
#include <vlmest/diagnose/oom/run_mode.hpp>

namespace vlmest::diagnose {

/// Bytes of one kind of tensor.
struct MemoryPart {
  Cause cause = Cause::unknown;
  Bytes bytes{};
};

/// Memory that grows from step to step.
struct SteadyGrowth {
  double bytes_per_step = 0;
  std::int64_t steps = 0;  ///< that were compared
  Bytes first{}, last{};   ///< in use at the first and the last of them
  std::string where;       ///< the place in the code whose allocations pile up, where a snapshot tells
};

/// An allocation that failed, from whatever evidence: all that a verdict needs of it. An empty figure is not known.
struct Failure {
  std::optional<PrintedSize> tensor;       ///< bytes that were asked for, before any rounding
  bool telling = true;                     ///< false: the size stands for any small tensor (2 and 20 MiB, a segment's)
  std::optional<PrintedSize> requested;    ///< as the evidence gives it
  std::optional<PrintedSize> allocated;    ///< by this process's tensors
  std::optional<PrintedSize> unallocated;  ///< reserved by its allocator and not in use
  std::optional<PrintedSize> split;      ///< of these: in segments that tensors are in, so that they cannot be returned
  std::optional<PrintedSize> free;       ///< on the device
  std::optional<PrintedSize> total;      ///< of the device
  std::optional<PrintedSize> allowed;    ///< to this process, where it is less
  std::optional<PrintedSize> non_torch;  ///< of this process, beside its allocator: context, libraries
  std::optional<PrintedSize> others;     ///< of other processes
  bool others_deduced = false;           ///< from what is neither free nor torch's: a context of this one may be in it
  bool outside = false;                  ///< asked for by CUDA or a library of it, not by torch's allocator
  std::optional<Bytes> largest_free;     ///< the largest cached block that is not in use
  RunPhase phase = RunPhase::unknown;
  AllocationSite site = AllocationSite::unknown;
  std::vector<Frame> frames;           ///< outermost first
  std::optional<ToldMode> told;        ///< whether it trained, as the stack, the log or what was alive tells
  std::vector<MemoryPart> live;        ///< what was alive, by a snapshot's stacks; the largest kind first
  std::optional<SteadyGrowth> growth;  ///< of the steps before
};

inline Failure failure_of(const OomMessage& m) {
  Failure f{.requested = m.requested,
            .allocated = allocated(m),
            .unallocated = unallocated(m),
            .free = m.free,
            .total = m.total,
            .allowed = m.allowed,
            .non_torch = non_torch(m),
            .phase = m.phase,
            .site = m.site,
            .frames = m.traceback.frames,
            .told = told_mode(m.traceback.frames, m.phase)};
  // What the driver keeps for itself is in the difference of total and free; processes that are listed are not.
  if (!m.processes.empty()) {
    f.others = other_processes(m);
  } else if (const auto rest = not_torch(m); rest && !m.own_process && !m.allowed) {
    // Messages before 2.1, and those of HIP, list no process. What remains beyond any context is somebody else's.
    if (rest->low > context_at_most) f.others = PrintedSize{rest->value, rest->low - context_at_most, rest->high};
    f.others_deduced = f.others.has_value();
  }
  f.outside = m.backend == MemoryBackend::cuda_driver || m.backend == MemoryBackend::cublas ||
              m.backend == MemoryBackend::cudnn || m.backend == MemoryBackend::cufft ||
              m.backend == MemoryBackend::nccl;
  if (const auto t = tensor_sizes(m)) {
    f.tensor = PrintedSize{t->high, t->low, t->high};
    f.telling = t->telling();
  }
  return f;
}

/// What this process's tensors may take: what it is allowed, or the device less what is not its allocator's, or what
/// it had reserved with what the driver had left, where that was too little. Empty where none is known.
inline std::optional<Bytes> limit(const Failure& f) {
  if (f.allowed) return f.allowed->value;
  if (f.total) {
    Bytes r = f.total->value;
    for (const auto& other : {f.non_torch, f.others})
      if (other && other->value < r) r -= other->value;
    return r;
  }
  if (!f.allocated || !f.unallocated || !f.requested) return std::nullopt;
  const Bytes reserved = f.allocated->value + f.unallocated->value;
  return f.free && f.free->value < f.requested->value ? reserved + f.free->value : reserved;
}

/// A failure whose evidence does not tell of the device, on a known one. Where the driver had less than was asked for,
/// the device was full, and what is neither free nor reserved here is somebody else's; otherwise the process had a
/// limit of its own.
inline Failure on_device(Failure f, Bytes memory) {
  if (f.total || !f.allocated || !f.unallocated || !f.requested || !f.free || f.free->value >= f.requested->value)
    return f;
  const Bytes reserved = f.allocated->value + f.unallocated->value, known = reserved + f.free->value;
  // A context and its libraries take some; a tenth of the device is none of theirs.
  if (known >= memory || (memory - known).value() * 10 < memory.value()) return f;
  f.total = PrintedSize::exactly(memory);
  f.others = PrintedSize::exactly(memory - known);
  return f;
}

}  // namespace vlmest::diagnose
