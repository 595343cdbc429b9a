// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>

namespace vlmest {

/// Refers to something that is called without arguments and gives an R; it lives as long as the call that it is handed
/// to. What takes one is a function and no template, so that it can stand in a table.
template <class R>
class CallRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, CallRef> && std::is_invocable_r_v<R, F&>) constexpr CallRef(F&& f)
      : called_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* called) -> R { return static_cast<R>((*static_cast<std::remove_reference_t<F>*>(called))()); }) {
  }

  R operator()() const { return call_(called_); }

 private:
  void* called_;
  R (*call_)(void*);
};

}  // namespace vlmest
