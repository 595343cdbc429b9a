// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame_meaning.hpp>
#include <vlmest/diagnose/evidence/stack/interned.hpp>

/// What the names of files and functions on a snapshot's stacks say about an allocation.
namespace vlmest::diagnose {

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

inline constexpr std::size_t longest = 4096;  ///< characters of a name that are looked at

/// Whose code a file is: in_torch, in_library, neither.
Traits origin_of(std::string_view file);
/// The same, and what the words of its path tell.
Traits of_file(std::string_view file);

Traits of_function(std::string_view function);

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
