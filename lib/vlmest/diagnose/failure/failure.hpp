// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/oom/figures.hpp>
#include <vlmest/diagnose/evidence/oom/message.hpp>
#include <vlmest/diagnose/evidence/stack/run_mode.hpp>
#include <vlmest/diagnose/evidence/text/printed_shape.hpp>
#include <vlmest/diagnose/evidence/text/xla_program.hpp>
#include <vlmest/diagnose/failure/tensor_sizes.hpp>
#include <vlmest/tensor/described_tensor.hpp>

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
  MemoryBackend backend = MemoryBackend::unknown;  ///< who said so; of a snapshot or a table torch's own allocator
  bool one_buffer = false;             ///< `allowed` (or an unknown bound) is what one buffer may have, not the process
  bool whole_graph = false;            ///< what was asked for is the buffer of a whole graph (ggml), not one tensor
  bool program = false;                ///< what was asked for are the temporaries of a whole compiled program (XLA)
  std::optional<XlaProgram> compiled;  ///< what XLA tells of that program
  bool foreign = false;                ///< of a runtime without torch: MLX, ggml, JAX, TurboMind, ONNX Runtime
  bool engine_pool = false;            ///< of an engine that maps its memory again (vLLM's CuMemAllocator)
  bool stack_elsewhere = false;        ///< the text has frames, but none that belong to this message
  bool outside = false;                ///< asked for by CUDA or a library of it, not by torch's allocator
  std::optional<Bytes> largest_free;   ///< the largest cached block that is not in use
  RunPhase phase = RunPhase::unknown;
  AllocationSite site = AllocationSite::unknown;
  std::vector<Frame> frames;            ///< outermost first
  std::optional<DescribedTensor> made;  ///< what the innermost line makes, where it gives shape and type
  std::int64_t shape_line = 0;          ///< the text's line that prints the shape of `made`, where another one does
  std::int64_t vocabulary = 0;          ///< of the model, where the text tells it
  bool early_torch = false;             ///< the message is worded as up to torch 2.1, of 2023
  std::optional<ToldMode> told;         ///< whether it trained, as the stack, the log or what was alive tells
  std::vector<MemoryPart> live;         ///< what was alive, by a snapshot's stacks; the largest kind first
  std::optional<SteadyGrowth> growth;   ///< of the steps before
};

Failure failure_of(const OomMessage& m);

/// Takes the only one of the shapes that a text prints which has, in its own type or in one of 4, 2, 8 or 1 bytes, the
/// size that was asked for, where the failed line itself gives none.
void take_printed_shape(Failure& f, const OomMessage& m, const std::vector<PrintedShape>& shapes);

/// What this process's tensors may take: what it is allowed, or the device less what is not its allocator's, or what
/// it had reserved with what the driver had left, where that was too little. Empty where none is known.
std::optional<Bytes> limit(const Failure& f);

/// A failure whose evidence does not tell of the device, on a known one. Where the driver had less than was asked for,
/// the device was full, and what is neither free nor reserved here is somebody else's; otherwise the process had a
/// limit of its own.
Failure on_device(Failure f, Bytes memory);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/failure/impl/failure.hpp>
#endif
