// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <vlmest/unit/error.hpp>
#include <vlmest/unit/words.hpp>

/// Packages whose kernels transformers runs in the place of functions of its own as soon as they are installed
/// (integrations/hub_kernels.py, use_kernel_func_from_hub_with_fallback).
namespace vlmest {

enum class KernelPackage : std::uint8_t {
  fla,            ///< flash-linear-attention: the gated delta rule
  causal_conv1d,  ///< causal-conv1d: short convolutions along the sequence
};
template <>
inline constexpr std::array<std::string_view, 2> words_of<KernelPackage>{"fla", "causal-conv1d"};

/// A set of them.
struct KernelPackages {
  bool fla = false;
  bool causal_conv1d = false;

  constexpr bool has(KernelPackage p) const { return p == KernelPackage::fla ? fla : causal_conv1d; }
  constexpr void add(KernelPackage p) { (p == KernelPackage::fla ? fla : causal_conv1d) = true; }
  friend bool operator==(const KernelPackages&, const KernelPackages&) = default;
};

/// Their names, "fla,causal-conv1d"; empty for none.
inline std::string names_of(KernelPackages p) {
  std::string s;
  for (const KernelPackage one : {KernelPackage::fla, KernelPackage::causal_conv1d})
    if (p.has(one)) s += (s.empty() ? "" : ",") + std::string(name(one));
  return s;
}

/// Those of `a` that are not of `b`.
constexpr KernelPackages without(KernelPackages a, KernelPackages b) {
  return {.fla = a.fla && !b.fla, .causal_conv1d = a.causal_conv1d && !b.causal_conv1d};
}

/// Packages whose kernels can run parts of a language model with this config. Configs of decoders that have such parts
/// say so themselves, by an overload `kernel_packages(config)`.
template <class Language>
KernelPackages packages_of(const Language& language) {
  if constexpr (requires { kernel_packages(language); })
    return kernel_packages(language);
  else
    return {};
}

/// What an estimate assumes where packages could run parts of a model and the plan has them not; empty: nothing.
inline std::string packages_note(KernelPackages can, KernelPackages has) {
  const std::string missing = names_of(without(can, has));
  if (missing.empty()) return {};
  return "parts of the language model are estimated as torch's own ops, as they run without " + missing +
         "; plan.packages=" + names_of(can) + " takes their kernels, as transformers does where they are installed";
}

/// Throws Error for a package that runs nothing of a model of this type.
inline void check_packages(KernelPackages can, KernelPackages has, const std::string& type) {
  if (const std::string idle = names_of(without(has, can)); !idle.empty())
    throw Error("plan.packages", type + " has nothing that " + idle + " runs", "leave it out");
}

}  // namespace vlmest
