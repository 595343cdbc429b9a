// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/text/printed_size.hpp>
#include <vlmest/diagnose/text/traceback.hpp>

namespace vlmest::diagnose {

/// Who said that there is no memory.
enum class MemoryBackend : std::uint8_t {
  unknown,            ///< a backend of torch's family that is none of the following
  cuda,               ///< torch's caching allocator
  cuda_malloc_async,  ///< torch with backend:cudaMallocAsync
  hip,
  mps,
  xpu,
  npu,
  cuda_driver,  ///< a CUDA call outside of the allocator, without figures
  cublas,
  cudnn,
  nccl,
  host,
  jax,
  ggml,
  mlx
};

inline constexpr std::array<std::string_view, 15> memory_backends{"unknown", "cuda",        "cuda_malloc_async",
                                                                  "hip",     "mps",         "xpu",
                                                                  "npu",     "cuda_driver", "cublas",
                                                                  "cudnn",   "nccl",        "host",
                                                                  "jax",     "ggml",        "mlx"};
constexpr std::string_view name(MemoryBackend b) { return memory_backends[static_cast<std::size_t>(b)]; }

/// "Process 4711 has 3.20 GiB memory in use."
struct ProcessMemory {
  std::int64_t pid = 0;
  PrintedSize in_use;
  bool operator==(const ProcessMemory&) const = default;
};

/// An out-of-memory message, with what it says; a figure that it does not give is empty. The spellings are those of
/// c10/cuda/CUDACachingAllocator.cpp from 0.4 on, of the other allocators of torch, and of the libraries in
/// MemoryBackend. Nothing here is derived: see oom_figures.hpp.
struct OomMessage {
  MemoryBackend backend = MemoryBackend::unknown;
  std::optional<PrintedSize> requested;             ///< "Tried to allocate": see tensor_sizes() for what it allows
  std::optional<PrintedSize> total;                 ///< of the device
  std::optional<PrintedSize> free;                  ///< of the device
  std::optional<PrintedSize> allocated;             ///< "allocated by PyTorch", "already allocated"
  std::optional<PrintedSize> reserved;              ///< "reserved in total", "cached": up to 2.0
  std::optional<PrintedSize> reserved_unallocated;  ///< "reserved by PyTorch but unallocated": from 2.1
  std::optional<PrintedSize> private_pools;         ///< "allocated in private pools"
  std::optional<PrintedSize> allowed;               ///< the limit set by a memory fraction (or by MPS)
  std::optional<PrintedSize> own_process;           ///< "this process has ... memory in use"
  std::optional<PrintedSize> other;                 ///< MPS: "other allocations"
  std::vector<ProcessMemory> processes;  ///< the others; where own_process_guessed, without the one that is this one
  bool own_process_guessed = false;      ///< own_process was a "Process N" whose figures are those of this process
  std::optional<std::int64_t> gpu;
  std::optional<std::int64_t> rank;  ///< of the line's prefix
  bool has_numbers = false;          ///< false: "CUDA error: out of memory" and its like
  bool hints_expandable = false;     ///< the text advises expandable_segments: torch 2.2 or later
  std::string text;                  ///< the message on one line, without prefixes; at most 2000 characters
  std::int64_t line = 0;             ///< where it begins in the file, from 1
  std::int64_t times = 1;            ///< how often the same figures of the same rank stand in the file
  Traceback traceback;
  RunPhase phase = RunPhase::unknown;
  AllocationSite site = AllocationSite::unknown;
};

}  // namespace vlmest::diagnose
