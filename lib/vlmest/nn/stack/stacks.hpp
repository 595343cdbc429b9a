// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/nn/stack/fused/traits.hpp>
#include <vlmest/nn/stack/transformers/traits.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// `call` of the stack that a runtime names: the one place that knows all of them. A stack without an overload of what
/// is called does not compile.
template <class Call>
constexpr decltype(auto) on_stack(Runtime r, Call&& call) {
  switch (r) {
    case Runtime::transformers: break;
    case Runtime::fused: return std::forward<Call>(call)(stacks::Fused{});
  }
  return std::forward<Call>(call)(stacks::Transformers{});
}

constexpr const StackTraits& traits_of(Runtime r) {
  return on_stack(r, [](auto s) -> const StackTraits& { return decltype(s)::traits; });
}

}  // namespace vlmest
