// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame.hpp>

namespace vlmest::diagnose {

/// What a program was doing, as its stack says.
enum class RunPhase : std::uint8_t {
  unknown,
  load_weights,
  forward,
  vision_forward,  ///< inside the vision tower
  loss,
  backward,
  optimizer_step,
  decode,          ///< inside generate(): prefill or a decode step
  server_profile,  ///< vLLM or SGLang measuring the peak before it sizes the KV cache
  module_gather    ///< ZeRO-3 or FSDP collecting the parameters of one module
};

inline constexpr std::array<std::string_view, 10> run_phases{
    "unknown",  "load_weights",   "forward", "vision_forward", "loss",
    "backward", "optimizer_step", "decode",  "server_profile", "module_gather"};
constexpr std::string_view name(RunPhase p) { return run_phases[static_cast<std::size_t>(p)]; }

/// What the innermost frames were making: the kind of tensor that was asked for.
enum class AllocationSite : std::uint8_t {
  unknown,
  score_matrix,     ///< attention scores or their softmax, written out by eager attention
  sdpa,             ///< scaled_dot_product_attention: its math path, its mask, or its output
  attention_mask,   ///< the additive mask, quadratic in the sequence
  logits,           ///< the output head
  logits_upcast,    ///< logits.float() before the loss
  cross_entropy,    ///< log-softmax of the logits and its gradient
  optimizer_state,  ///< moments, made at the first step
  optimizer_temporary,
  gradient,
  weights,
  module_gather,  ///< all-gathered parameters of one module
  kv_cache,
  patch_embedding,
  image_features,  ///< concatenated or scattered image embeddings
  mlp,
  projection,  ///< q, k, v or output projections, any linear
  norm,
  rotary,
  fft,
  pixel_values,
  convolution,
  decoded_media  ///< pictures, video or sound that are decoded, in the host's memory
};

inline constexpr std::array<std::string_view, 23> allocation_sites{"unknown",
                                                                   "score_matrix",
                                                                   "sdpa",
                                                                   "attention_mask",
                                                                   "logits",
                                                                   "logits_upcast",
                                                                   "cross_entropy",
                                                                   "optimizer_state",
                                                                   "optimizer_temporary",
                                                                   "gradient",
                                                                   "weights",
                                                                   "module_gather",
                                                                   "kv_cache",
                                                                   "patch_embedding",
                                                                   "image_features",
                                                                   "mlp",
                                                                   "projection",
                                                                   "norm",
                                                                   "rotary",
                                                                   "fft",
                                                                   "pixel_values",
                                                                   "convolution",
                                                                   "decoded_media"};
constexpr std::string_view name(AllocationSite s) { return allocation_sites[static_cast<std::size_t>(s)]; }

/// A Python traceback, outermost frame first, as Python prints it.
struct Traceback {
  std::vector<Frame> frames;
  std::string exception;  ///< "torch.OutOfMemoryError", empty where none is named
  bool operator==(const Traceback&) const = default;
};

}  // namespace vlmest::diagnose
