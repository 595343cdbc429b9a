// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/view.hpp>

/// Complex numbers and their pairs of real ones.
namespace vlmest::eager {

/// torch.real of a complex tensor: a view.
inline Value real_part(Value x) {
  Shape t = x.tensor().strides;
  for (int i = 0; i < t.rank(); ++i) t[i] = checked_mul(t[i], 2);
  const DType part = x.dtype() == DType::complex128  ? DType::fp64
                     : x.dtype() == DType::complex32 ? DType::fp16
                                                     : DType::fp32;
  return x.builder().view(x, x.shape(), t, part);
}

Value view_as_complex(Value x);

/// torch.view_as_real: each complex number becomes a pair; a view. Its gradient comes back as complex numbers, packed
/// (tools/autograd/derivatives.yaml).
inline Value view_as_real(Value x) {
  Shape s = x.shape(), t = x.tensor().strides;
  for (int i = 0; i < t.rank(); ++i) t[i] = checked_mul(t[i], 2);
  s.push_back(2);
  t.push_back(1);
  const DType part = real_part(x).dtype();
  const GradEdge e = edge(x);
  Value r = x.builder().view(x, s, t, part);
  differentiable(r, "ViewAsRealBackward0", {e},
                 [](Gradients& g) { g.out[0] = view_as_complex(contiguous(std::move(g.in[0]))); });
  x.reset();
  return r;
}
/// torch.view_as_complex: pairs of the last dimension become complex numbers; a view. Its gradient comes back as pairs,
/// packed.
inline Value view_as_complex(Value x) {
  Shape s = x.shape(), t = x.tensor().strides;
  if (s[-1] != 2 || t[-1] != 1) throw Error("graph", "view_as_complex of " + to_string(s));
  s.erase(s.rank() - 1);
  t.erase(t.rank() - 1);
  for (int i = 0; i < t.rank(); ++i) t[i] /= 2;
  const GradEdge e = edge(x);
  Value r = x.builder().view(x, s, t, complex_of(x.dtype()));
  differentiable(r, "ViewAsComplexBackward0", {e},
                 [](Gradients& g) { g.out[0] = view_as_real(contiguous(std::move(g.in[0]))); });
  x.reset();
  return r;
}
/// torch.polar: lengths and angles become complex numbers.
inline Value polar(Value lengths, Value angles) {
  const DType t = complex_of(angles.dtype());
  return pointwise("polar", t, std::move(lengths), std::move(angles));
}

}  // namespace vlmest::eager
