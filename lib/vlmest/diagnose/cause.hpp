// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
  unknown
};

inline constexpr std::array<std::string_view, 18> causes{
    "weights",       "optimizer_state", "gradients",    "activations",     "attention_scores",
    "logits",        "kv_cache",        "vision_tiles", "fft_buffers",     "fragmentation",
    "leak",          "other_process",   "host_bound",   "bandwidth_bound", "compute_bound",
    "communication", "misaligned_gemm", "unknown"};
constexpr std::string_view name(Cause c) { return causes[static_cast<std::size_t>(c)]; }

}  // namespace vlmest::diagnose
