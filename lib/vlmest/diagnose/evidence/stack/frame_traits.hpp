// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/interned.hpp>

/// What the names of files and functions on a stack say about an allocation. The names are those of PyTorch,
/// transformers, accelerate, DeepSpeed, bitsandbytes and vLLM; no model is known by name.
namespace vlmest::diagnose {

/// Bits of a set of traits.
namespace trait {
enum Trait : std::uint32_t {
  in_torch = 1u << 0,    ///< torch itself, Python's library, C++, helpers such as einops
  in_library = 1u << 1,  ///< an installed package
  in_optimizer = 1u << 2,
  in_backward = 1u << 3,
  accumulates = 1u << 4,  ///< autograd's AccumulateGrad: the gradient of a leaf
  in_forward = 1u << 5,   ///< a module's call
  loads = 1u << 6,        ///< from_pretrained, load_state_dict, module.to and the like
  constructs = 1u << 7,   ///< __init__
  in_cache = 1u << 8,     ///< keys and values
  takes_input = 1u << 9,  ///< a batch on its way to the device
  workspace = 1u << 10,   ///< scratch of cuBLAS or cuDNN
  attention = 1u << 11,
  loss = 1u << 12,
  mask = 1u << 13,
  vision = 1u << 14,
  fft = 1u << 15,
  linear = 1u << 16,
  norm = 1u << 17,
  embedding = 1u << 18,
  zeroes = 1u << 19,      ///< zero_grad
  collective = 1u << 20,  ///< gathers of sharded parameters, buckets of gradients
  optimizes = 1u << 21,   ///< a step function, where the file is not known to be an optimizer's
  gathers = 1u << 22      ///< parameters of FSDP and ZeRO-3 put together
};
}  // namespace trait
using Traits = std::uint32_t;

namespace naming {

inline bool has(std::string_view s, std::initializer_list<std::string_view> parts) {
  for (const auto p : parts)
    if (s.find(p) != std::string_view::npos) return true;
  return false;
}
inline bool is(std::string_view s, std::initializer_list<std::string_view> words) {
  for (const auto w : words)
    if (s == w) return true;
  return false;
}
inline std::string_view base(std::string_view path) {
  const auto slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Traits of_file(std::string_view file);

Traits of_function(std::string_view f);

/// Methods of torch.nn.Module that make or move parameters.
inline bool moves_module(std::string_view file, std::string_view function) {
  return file.ends_with("torch/nn/modules/module.py") &&
         is(function, {"_apply", "to", "convert", "cuda", "half", "bfloat16", "float", "double", "to_empty"});
}

}  // namespace naming

/// Of one stack: what its frames say together, and the frames worth showing (no_frame where there is none).
struct CallStackTraits {
  static constexpr std::uint32_t no_frame = UINT32_MAX;
  Traits all = 0;
  Traits innermost = 0;              ///< of the frames up to and with `program`
  std::uint32_t program = no_frame;  ///< the innermost frame outside of torch: a line of the model's code
  std::uint32_t user = no_frame;     ///< the innermost frame outside of all installed packages
};

/// The traits of every stack. Each string is looked at once, however many frames it is part of.
std::vector<CallStackTraits> stack_traits(const StackTable& stacks);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/frame_traits.hpp>
#endif
