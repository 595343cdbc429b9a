// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager.hpp>

namespace vlmest {

/// Whether the leading dimensions of x are one without a copy (aten/src/ATen/native/LinearAlgebra.cpp, should_fold).
inline bool folds_in_place(const Tensor& x) {
  for (int i = 0; i < x.shape.rank() - 2; ++i)
    if (x.strides[i] != checked_mul(x.strides[i + 1], x.shape[i + 1])) return false;
  return true;
}

/// x[..., m, k] x w[k, n] with w repeated for every matrix of x: how matmul multiplies where folding would copy x.
inline Value unfolded_matmul(Value x, Value w) {
  using namespace eager;
  Shape out = x.shape();
  const std::int64_t m = x.size(-2), k = x.size(-1), n = w.size(1);
  const std::int64_t stack = m * k == 0 ? 0 : numel(out).value() / (m * k);
  out[out.rank() - 1] = n;
  return view(bmm(reshape(std::move(x), {stack, m, k}), expand(std::move(w), {stack, k, n})), out);
}

/// torch.matmul(x, w) of x[..., m, k] and w[k, n]: rows of x are folded, with a copy where they do not lie so, unless w
/// is frozen (requires no gradient): then x is multiplied matrix by matrix.
inline Value stack_matmul(Value x, Value w, bool frozen) {
  using namespace eager;
  const AutocastCall call(CastPolicy::lower, x, w);
  if (frozen && !folds_in_place(x.tensor())) return unfolded_matmul(std::move(x), std::move(w));
  Shape out = x.shape();
  const std::int64_t k = x.size(-1);
  out[out.rank() - 1] = w.size(1);
  return view(mm(reshape(std::move(x), {-1, k}), std::move(w)), out);
}

/// torch.nn.functional.linear: x[..., in], weight[out, in] -> [..., out]. aten/src/ATen/native/Linear.cpp: with a bias
/// and a contiguous input, addmm on the flattened rows (which are made before the weight is turned: where a weight
/// works twice, this is the order in which gradients are added up); else matmul, and the bias added afterwards.
inline Value linear(Value x, Value weight, Value bias, bool frozen) {
  using namespace eager;
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  if (!bias) return stack_matmul(std::move(x), transpose(std::move(weight), 0, 1), frozen);
  if (x.shape().rank() != 2 && !is_contiguous(x))
    return add(stack_matmul(std::move(x), transpose(std::move(weight), 0, 1), frozen), std::move(bias));
  Shape out = x.shape();
  out[out.rank() - 1] = weight.size(0);
  Value rows =
      view(x, {-1, x.size(-1)});  // before the weight's transpose (_flatten_nd_linear): its backward comes later
  x.reset();
  Value w = transpose(std::move(weight), 0, 1);
  return view(mm(std::move(rows), std::move(w), std::move(bias)), out);
}
/// A weight is frozen in a training step in which it collects no gradient; what inference loads could be trained.
inline Value linear(Value x, Value weight, Value bias) {
  const bool frozen = x.builder().grad_enabled() && !eager::needs_grad(weight);
  return linear(std::move(x), std::move(weight), std::move(bias), frozen);
}

}  // namespace vlmest
