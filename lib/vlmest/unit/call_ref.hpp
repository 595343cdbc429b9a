// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace vlmest {

/// Refers to something that is called with A... and gives an R; it lives as long as the call that it is handed to. What
/// takes one is a function and no template, so that it can stand in a table and is compiled once.
template <class R, class... A>
class CallRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, CallRef> && std::is_invocable_r_v<R, F&, A...>) constexpr CallRef(
      F&& f)  // NOLINT(google-explicit-constructor): what is called is handed over as it is
      : called_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))), call_([](void* called, A... a) -> R {
          return static_cast<R>((*static_cast<std::remove_reference_t<F>*>(called))(std::forward<A>(a)...));
        }) {}

  R operator()(A... a) const { return call_(called_, std::forward<A>(a)...); }

 private:
  void* called_;
  R (*call_)(void*, A...);
};

}  // namespace vlmest
