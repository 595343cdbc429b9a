// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/nn/stack/fused/traits.hpp>
#include <vlmest/nn/stack/transformers/traits.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// `call` of the stack that a profile names: the one place that knows all of them. A stack without an overload of what
/// is called does not compile.
template <class Call>
constexpr decltype(auto) on_stack(Profile p, Call&& call) {
  switch (p) {
    case Profile::transformers: break;
    case Profile::fused: return std::forward<Call>(call)(stacks::Fused{});
  }
  return std::forward<Call>(call)(stacks::Transformers{});
}

constexpr const StackTraits& traits_of(Profile p) {
  return on_stack(p, [](auto s) -> const StackTraits& { return decltype(s)::traits; });
}

}  // namespace vlmest
