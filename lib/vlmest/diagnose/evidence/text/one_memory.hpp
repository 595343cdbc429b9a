// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// Machines whose GPU has no memory of its own: what a process of theirs is killed for may be its tensors.
namespace vlmest::diagnose {

namespace one_memory {

/// NVIDIA's Jetson, GB10 and DGX Spark, AMD's Strix Halo, and the words for all of them.
inline constexpr std::array<std::string_view, 10> names{"jetson",         "jetpack",   "agx orin", "orin nx",
                                                        "orin nano",      "dgx spark", "gb10",     "uma",
                                                        "unified memory", "strix halo"};

}  // namespace one_memory

/// The name of such a machine in a text's first 64 KiB; empty where none stands there as words of its own.
inline std::string_view machine_of_one_memory(std::string_view text) {
  const std::string low = log_prefix::lower_case(text.substr(0, std::min<std::size_t>(text.size(), 64 << 10)));
  for (const std::string_view name : one_memory::names)
    for (auto at = low.find(name); at != std::string::npos; at = low.find(name, at + 1)) {
      const bool begins = at == 0 || (!is_letter(low[at - 1]) && !is_digit(low[at - 1]));
      const std::size_t end = at + name.size();
      if (begins && (end == low.size() || (!is_letter(low[end]) && !is_digit(low[end])))) return name;
    }
  return {};
}

}  // namespace vlmest::diagnose
