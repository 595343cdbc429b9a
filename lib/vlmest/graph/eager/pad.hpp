// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/view.hpp>

/// torch.nn.functional.pad with a constant.
namespace vlmest::eager {

/// torch.nn.functional.pad of the last dimension with a constant: a filled tensor and a copy into it.
inline Value pad_last(Value a, std::int64_t before, std::int64_t after) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  Shape s = a.shape();
  s[s.rank() - 1] = checked_add(s[-1], checked_add(before, after));
  const Bytes in = data_bytes(a);
  // Into a single row the copy is contiguous.
  const int kernels = 1 + (numel(a.shape()).value() == a.size(-1) ? copy_kernels(a) : 1);
  const TensorId r = b.result(t, s, "constant_pad_nd");
  const GradEdge e = edge(a);
  Value padded =
      emit1(b, "constant_pad_nd",
            MemoryOp{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = kernels}, r, {}, a);
  // constant_pad_nd_backward pads by less than nothing: the part that was there is copied.
  differentiable(padded, "ConstantPadNdBackward0", {e}, [before, width = e ? e.shape[-1] : 0](Gradients& g) {
    g.out[0] = clone(slice(g.in[0], -1, before, before + width));
  });
  return padded;
}

/// Elements behind the end of a dimension.
struct EndPadding {
  int dim;
  std::int64_t after;
};

/// torch.nn.functional.pad behind the ends of dimensions. By nothing it is a copy in the layout that is there, by less
/// than nothing, as the backward pads, a copy of what remains (aten/src/ATen/native/PadNd.cpp, constant_pad_nd).
inline Value pad_end(Value a, const std::vector<EndPadding>& ends) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value padded;
  const auto grows = [](const EndPadding& p) { return p.after > 0; };
  if (std::any_of(ends.begin(), ends.end(), grows)) {
    Shape s = a.shape();
    for (const EndPadding& p : ends) s[wrap(p.dim, s.rank())] = checked_add(a.size(p.dim), p.after);
    const Bytes in = data_bytes(a);
    const MemoryOp op{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = 2};
    padded = emit1(b, "constant_pad_nd", op, b.result(t, s, "constant_pad_nd"), {}, a);
  } else {
    {
      NoGrad views(b);
      for (const EndPadding& p : ends) a = slice(a, p.dim, 0, a.size(p.dim) + p.after);
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
  differentiable(padded, "ConstantPadNdBackward0", {e}, [back = ends](Gradients& g) mutable {
    for (EndPadding& p : back) p.after = -p.after;
    g.out[0] = pad_end(std::move(g.in[0]), back);
  });
  return padded;
}
inline Value pad_end(Value a, int dim, std::int64_t after) {
  return pad_end(std::move(a), std::vector<EndPadding>{{dim, after}});
}

/// torch.nn.functional.pad of maps[N, H, W, C] behind the last row and column. By nothing it is a copy.
inline Value pad_map(Value a, std::int64_t rows, std::int64_t cols) {
  if (rows == 0 && cols == 0) return pad_end(std::move(a), 1, 0);
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s{a.size(0), checked_add(a.size(1), rows), checked_add(a.size(2), cols), a.size(3)};
  const Shape whole = a.shape();
  const GradEdge e = edge(a);
  const Bytes in = data_bytes(a);
  const MemoryOp op{.read = in, .written = size_of(numel(s), t) + in, .dtype = t, .kernels = 2};
  Value padded = emit1(b, "constant_pad_nd", op, b.result(t, s, "constant_pad_nd"), {}, a);
  differentiable(padded, "ConstantPadNdBackward0", {e}, [whole](Gradients& g) {
    Value part;
    {
      NoGrad views(g.in[0].builder());
      part = slice(slice(g.in[0], 1, 0, whole[1]), 2, 0, whole[2]);
    }
    g.out[0] = pad_end(std::move(part), 1, 0);  // a copy of what remains
  });
  return padded;
}

}  // namespace vlmest::eager
