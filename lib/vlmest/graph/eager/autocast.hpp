// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <vlmest/graph/eager/emit.hpp>

/// What torch.autocast does to a call of an op that it knows (torch 2.11, aten/src/ATen/autocast_mode.h and .cpp).
/// - lower type: convolutions, linear, matmul, mm, addmm, bmm, scaled_dot_product_attention
/// - fp32: reciprocal, rsqrt, pow, exp, log, layer_norm, nll_loss, resampling
/// - fp32 result where the caller names no type: softmax, log_softmax, sum, prod, cumsum
/// - widest type among the operands: grid_sampler, index_put (not in place)
/// All others run as they are called, on types promoted by the op itself.
namespace vlmest::eager {

Value to(Value a, DType t);  // copy.hpp

enum class CastPolicy : std::uint8_t { lower, fp32, widest };

/// The types that autocast looks at: floating ones but for fp64.
constexpr bool is_castable(DType t) { return t == DType::fp32 || is_half(t); }

/// v in type t, where autocast may cast it. The copy of a weight in the lower type is made once and kept. A weight is
/// an fp32 tensor that asks for gradients, recorded now or not, and no view.
inline Value cached_cast(Value v, DType t) {
  if (!v || !is_castable(v.dtype()) || v.dtype() == t) return v;
  Builder& b = v.builder();
  if (t != b.autocast.lower || v.dtype() != DType::fp32 || !b.history.is_leaf(v.id())) return to(std::move(v), t);
  const TensorId weight = v.id();
  if (!b.autocast.copy_of(weight)) {
    Value copy = to(std::move(v), t);
    b.label(copy, "weight cast");
    b.autocast.copy_of(weight) = std::move(copy);
  }
  return b.autocast.copy_of(weight);
}

/// One call of an op on a list, for as long as the object lives: its operands are replaced by their casts, the last
/// one first (the order in which GCC evaluates the wrapper's arguments); the originals and the casts stay to the end of
/// the call, and ops inside it are not cast again. Nothing happens where autocast is off.
template <std::size_t N>
class AutocastCall {
 public:
  template <class... V>
  explicit AutocastCall(CastPolicy policy, V&... operands) {
    const std::array<Value*, N> all{&operands...};
    for (const Value* v : all)
      if (*v) b_ = &v->builder();
    if (!b_ || !b_->autocast.enabled) {
      b_ = nullptr;
      return;
    }
    b_->autocast.enabled = false;
    const DType t = type(policy, all);
    for (std::size_t i = N; i-- > 0;) {
      given_[i] = *all[i];
      *all[i] = cached_cast(*all[i], t);
      cast_[i] = *all[i];
    }
  }
  ~AutocastCall() {
    if (b_) b_->autocast.enabled = true;
  }
  AutocastCall(const AutocastCall&) = delete;
  AutocastCall& operator=(const AutocastCall&) = delete;

 private:
  DType type(CastPolicy policy, const std::array<Value*, N>& all) const {
    if (policy == CastPolicy::fp32) return DType::fp32;
    if (policy == CastPolicy::widest)
      for (const Value* v : all)
        if (*v && v->dtype() == DType::fp32) return DType::fp32;
    return b_->autocast.lower;
  }

  Builder* b_ = nullptr;
  std::array<Value, N> given_, cast_;
};
template <class... V>
AutocastCall(CastPolicy, V&...) -> AutocastCall<sizeof...(V)>;

/// The type of a result whose caller names none: fp32 where autocast is on, else `t`.
inline DType autocast_result(const Value& v, DType t) {
  return v.builder().autocast.enabled && is_castable(v.dtype()) ? DType::fp32 : t;
}

}  // namespace vlmest::eager
