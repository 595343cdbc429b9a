// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <vlmest/nn/stack/fused/stack.hpp>
#include <vlmest/nn/stack/transformers/stack.hpp>
#include <vlmest/plan/plan.hpp>
#include <vlmest/unit/words.hpp>

/// The runtimes: one row is a folder's include above and its stack below. A Runtime is the place of a row; its word,
/// what is offered and refused with it, and which functions run come from there. The first is what a plan has by
/// default.
namespace vlmest {

namespace stacks {
inline constexpr std::array registry{&transformers::stack, &fused::stack};
static_assert(registry.size() <= 256, "Runtime has one byte");
}  // namespace stacks

template <>
inline constexpr auto words_of<Runtime> = [] {
  std::array<std::string_view, stacks::registry.size()> r{};
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = std::string_view(stacks::registry[i]->name);
  return r;
}();

/// The runtime of that name; a name that no row has does not compile.
consteval Runtime runtime_id(std::string_view name) {
  const auto r = value_of<Runtime>(name);
  if (!r) throw "no row of the registry has this name";
  return *r;
}

/// All of them.
inline constexpr auto runtimes = [] {
  std::array<Runtime, stacks::registry.size()> r{};
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<Runtime>(i);
  return r;
}();

/// What a plan runs on, for a Context.
constexpr const Stack& stack_of(Runtime r) { return *stacks::registry[static_cast<std::size_t>(r)]; }
constexpr const Stack& stack_of(const Plan& p) { return stack_of(p.runtime); }

constexpr const StackTraits& traits_of(Runtime r) { return stack_of(r).traits; }

/// The first runtime whose trait is `wanted`, for hints; the default one where none has it.
constexpr Runtime first_with(Trait StackTraits::*trait, bool wanted = true) {
  for (const Runtime r : runtimes)
    if (traits_of(r).*trait == wanted) return r;
  return Runtime{};
}

}  // namespace vlmest
