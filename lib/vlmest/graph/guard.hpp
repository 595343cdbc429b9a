// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

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

/// torch.autocast with the given lower type for as long as it lives, or with enabled=False where none is given. The
/// copies of weights go with the outermost one.
class Autocast {
 public:
  Autocast(Builder& b, std::optional<DType> lower) : b_(b), before_(b.autocast.enabled), lower_(b.autocast.lower) {
    b.autocast.enabled = lower.has_value();
    b.autocast.lower = lower.value_or(lower_);
    ++b.autocast.depth;
  }
  ~Autocast() {
    b_.autocast.enabled = before_;
    b_.autocast.lower = lower_;
    if (--b_.autocast.depth == 0) b_.autocast.copies.clear();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  Builder& b_;
  bool before_;
  DType lower_;
};

}  // namespace vlmest
