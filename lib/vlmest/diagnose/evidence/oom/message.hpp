// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/printed_size.hpp>

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
  cufft,
  nccl,
  host,
  jax,
  ggml,
  mlx,
  server  ///< an inference server whose own budget is too small: no allocation failed
};

inline constexpr std::array<std::string_view, 17> memory_backends{"unknown", "cuda",        "cuda_malloc_async",
                                                                  "hip",     "mps",         "xpu",
                                                                  "npu",     "cuda_driver", "cublas",
                                                                  "cudnn",   "cufft",       "nccl",
                                                                  "host",    "jax",         "ggml",
                                                                  "mlx",     "server"};
constexpr std::string_view name(MemoryBackend b) { return memory_backends[static_cast<std::size_t>(b)]; }

/// What a message says beyond its figures, where it is not torch's allocator that speaks.
enum class OomReason : std::uint8_t {
  none,
  kv_cache_too_small,  ///< vLLM, LMDeploy, TGI: what is left for the KV cache does not hold one request, or nothing is
                       ///< left
  kv_cache_full,       ///< SGLang: the pool of the requests that run is used up
  share_too_small,     ///< SGLang: nothing is left for the KV cache of the share of the device that it may take
  prefill_too_large,   ///< TGI: the prefill that it warms up with does not fit
  device_in_use,       ///< vLLM: less is free on the device than the share that it is to take
  killed,              ///< by the kernel, Slurm, Kubernetes or Ray, for the host's memory
  shared_memory,       ///< of a DataLoader's workers: /dev/shm
  no_algorithm,        ///< cuDNN found none, mostly because no memory is left for a workspace
  compute_buffer,      ///< ggml: activations
  model_buffer         ///< ggml: weights
};
inline constexpr std::array<std::string_view, 11> oom_reasons{
    "none",   "kv_cache_too_small", "kv_cache_full", "share_too_small", "prefill_too_large", "device_in_use",
    "killed", "shared_memory",      "no_algorithm",  "compute_buffer",  "model_buffer"};
constexpr std::string_view name(OomReason r) { return oom_reasons[static_cast<std::size_t>(r)]; }

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
  OomReason reason = OomReason::none;
  std::optional<PrintedSize> requested;  ///< "Tried to allocate": see tensor_sizes() for what it allows
  std::optional<PrintedSize> total;      ///< of the device
  std::optional<PrintedSize> free;       ///< of the device
  std::optional<PrintedSize> allocated;  ///< "allocated by PyTorch", "already allocated"
  std::optional<PrintedSize> reserved;   ///< "reserved in total": 1.4 to 2.0
  std::optional<PrintedSize>
      reserved_unallocated;                  ///< "cached": to 1.3; "reserved by PyTorch but unallocated": from 2.1
  std::optional<PrintedSize> private_pools;  ///< "allocated in private pools"
  std::optional<PrintedSize> allowed;        ///< the limit set by a memory fraction (or by MPS)
  std::optional<PrintedSize> own_process;    ///< "this process has ... memory in use"
  std::optional<PrintedSize> other;          ///< MPS: "other allocations"
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

/// Whether more than figures is known of a message: its stack, or what was being made.
inline bool tells_more_than_figures(const OomMessage& m) {
  return !m.traceback.frames.empty() || m.reason != OomReason::none || m.phase != RunPhase::unknown ||
         m.site != AllocationSite::unknown;
}

}  // namespace vlmest::diagnose
