// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/builder.hpp>

/// What holds for as long as an object lives, as a with statement does.
namespace vlmest {

/// Enters a module's scope for as long as it lives.
class InScope {
 public:
  InScope(Builder& b, ScopeId s) : b_(b), before_(b.scope()) { b.enter(s); }
  ~InScope() { b_.enter(before_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Builder& b_;
  ScopeId before_;
};

/// torch.no_grad() for as long as it lives.
class NoGrad {
 public:
  explicit NoGrad(Builder& b) : b_(b), before_(b.grad_enabled()) { b.enable_grad(false); }
  ~NoGrad() { b_.enable_grad(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Builder& b_;
  bool before_;
};

}  // namespace vlmest
