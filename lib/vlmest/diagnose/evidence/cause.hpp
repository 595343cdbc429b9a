// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vlmest::diagnose {

/// What a run died of, or is slow by. The words are public interface: `verdict.cause` of `vlmest diagnose`.
enum class Cause : std::uint8_t {
  weights,
  optimizer_state,
  gradients,
  activations,
  attention_scores,
  logits,
  kv_cache,
  vision_tiles,
  fft_buffers,
  fragmentation,
  leak,
  other_process,
  host_bound,
  bandwidth_bound,
  compute_bound,
  communication,
  misaligned_gemm,
  host_memory,    ///< of the machine, not of a device: a killed process, a failed malloc, /dev/shm
  engine_budget,  ///< an engine's own share of the device: gpu_memory_utilization, mem_fraction_static, ...
  encoder_cache,  ///< a picture has more tokens than an engine keeps of its encoder's outputs
  profile_run,    ///< an engine's run over the largest inputs that its settings admit, before it serves any
  slow_data,      ///< steps that wait for their inputs
  unknown
};

inline constexpr std::array<std::string_view, 23> causes{
    "weights",       "optimizer_state", "gradients",    "activations",     "attention_scores",
    "logits",        "kv_cache",        "vision_tiles", "fft_buffers",     "fragmentation",
    "leak",          "other_process",   "host_bound",   "bandwidth_bound", "compute_bound",
    "communication", "misaligned_gemm", "host_memory",  "engine_budget",   "encoder_cache",
    "profile_run",   "slow_data",       "unknown"};
static_assert(causes.back() == "unknown" && causes.size() == static_cast<std::size_t>(Cause::unknown) + 1);
constexpr std::string_view name(Cause c) { return causes[static_cast<std::size_t>(c)]; }

}  // namespace vlmest::diagnose
