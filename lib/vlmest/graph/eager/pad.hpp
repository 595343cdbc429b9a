// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/view.hpp>

/// torch.nn.functional.pad with a constant.
namespace vlmest::eager {

/// Elements before and behind those of a dimension; fewer than none takes them away.
struct Padding {
  int dim;
  std::int64_t before, after;
};

/// torch.nn.functional.pad with a constant (aten/src/ATen/native/PadNd.cpp, constant_pad_nd): a filled tensor and a
/// copy into it. By nothing it is a copy in the layout that is there; by less than nothing, as its backward pads, a
/// copy of what remains. A call either adds to dimensions or takes away.
inline Value pad(Value a, const std::vector<Padding>& by) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value padded;
  if (std::any_of(by.begin(), by.end(), [](const Padding& p) { return p.before > 0 || p.after > 0; })) {
    Shape s = a.shape();
    int outermost = s.rank();
    for (const Padding& p : by) {
      const int dim = wrap(p.dim, s.rank());
      outermost = std::min(outermost, dim);
      s[dim] = checked_add(a.size(p.dim), checked_add(p.before, p.after));
    }
    std::int64_t pieces_of_target = 1;
    for (int d = 0; d < outermost; ++d) pieces_of_target = checked_mul(pieces_of_target, a.size(d));
    const Bytes in = data_bytes(a);
    // One run of the target is contiguous.
    const int copy = by.size() == 1 && pieces_of_target == 1 ? copy_kernels(a) : 1;
    const MemoryOp op{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = 1 + copy};
    padded = emit1(b, "constant_pad_nd", op, b.result(t, s, "constant_pad_nd"), {}, a);
  } else {
    {
      NoGrad views(b);
      for (const Padding& p : by) a = slice(a, p.dim, -p.before, a.size(p.dim) + p.after);
    }
    // What has no gaps keeps its layout and goes by cudaMemcpyAsync.
    const Shape strides = strides_like(a.tensor(), a.shape());
    const Bytes n = data_bytes(a);
    const MemoryOp op{.read = n,
                      .written = n,
                      .dtype = t,
                      .kernels = strides == a.tensor().strides || is_contiguous(a) ? 0 : 1,
                      .access = Access::strided};
    padded = emit1(b, "constant_pad_nd", op, b.result(t, a.shape(), strides, "constant_pad_nd"), {}, a);
  }
  differentiable(padded, "ConstantPadNdBackward0", {e}, [back = by](Gradients& g) mutable {
    for (Padding& p : back) p = {p.dim, -p.before, -p.after};
    g.out[0] = pad(std::move(g.in[0]), back);
  });
  return padded;
}
inline Value pad(Value a, int dim, std::int64_t before, std::int64_t after) {
  return pad(std::move(a), std::vector<Padding>{{dim, before, after}});
}

}  // namespace vlmest::eager
