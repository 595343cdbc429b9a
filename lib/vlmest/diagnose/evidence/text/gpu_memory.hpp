// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// GPUs that people name instead of their memory.
namespace vlmest::diagnose::gpu_memory {

/// A name in lower case, and GiB. Of a name that was sold with several sizes the largest: what does not fit it fits
/// none. Source: NVIDIA's and AMD's product pages and data sheets of each.
struct NamedGpu {
  std::string_view name;
  int gib;
};
inline constexpr auto named = std::to_array<NamedGpu>({
    {"b200", 180},     {"h200", 141},    {"h100", 80},     {"h800", 80},  {"h20", 96},     {"a100", 80},
    {"a800", 80},      {"v100", 32},     {"p100", 16},     {"a6000", 48}, {"rtx6000", 48}, {"rtx 6000", 48},
    {"a40", 48},       {"l40", 48},      {"l20", 48},      {"a30", 24},   {"a10g", 24},    {"a10", 24},
    {" l4 ", 24},      {" t4 ", 16},     {"tesla t4", 16}, {"p40", 24},   {"5090", 32},    {"5080", 16},
    {"5070 ti", 16},   {"5070", 12},     {"4090", 24},     {"4080", 16},  {"4070 ti", 16}, {"4070", 12},
    {"4060 ti", 16},   {"4060", 8},      {"3090", 24},     {"3080", 12},  {"3070", 8},     {"3060", 12},
    {"2080 ti", 11},   {"2080ti", 11},   {"2080", 8},      {"2060", 12},  {"1080 ti", 11}, {"1080ti", 11},
    {"titan rtx", 24}, {"rtx 8000", 48}, {"rtx8000", 48},  {"a5000", 24}, {"a4000", 16},   {"mi300x", 192},
    {"mi250", 64},     {"7900 xtx", 24}, {"7800 xt", 16},
});

/// Bytes of the first of them that a line in lower case names as a word; 0 where it names none.
inline double named_in(std::string_view low) {
  for (const NamedGpu& gpu : named)
    for (auto at = low.find(gpu.name); at != std::string_view::npos; at = low.find(gpu.name, at + 1)) {
      const auto end = at + gpu.name.size();
      const bool begins = at == 0 || (!is_digit(low[at - 1]) && !is_letter(low[at - 1]) && low[at - 1] != '.');
      const bool ends = end >= low.size() || (!is_digit(low[end]) && !is_letter(low[end]) && low[end] != '.');
      // A number alone may count anything: behind a word of its maker it is a GPU's.
      const bool bare = is_digit(gpu.name.front());
      const auto before = low.substr(at > 12 ? at - 12 : 0, at > 12 ? 12 : at);
      const bool maker = before.find("rtx") != std::string_view::npos || before.find("gtx") != std::string_view::npos ||
                         before.find("geforce") != std::string_view::npos ||
                         before.find("rx ") != std::string_view::npos || before.ends_with("*") ||
                         before.ends_with("x ") || before.ends_with(" a ") || before.ends_with("my ") ||
                         before.ends_with("张") || before.ends_with("卡");
      if (begins && ends && (!bare || maker)) return gpu.gib * 1073741824.0;
    }
  return 0;
}

}  // namespace vlmest::diagnose::gpu_memory
