// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/channels_last.hpp>
#include <vlmest/graph/eager/reduce.hpp>
#include <vlmest/graph/eager/resample.hpp>

/// Pooling over squares that do not overlap, or over whole maps.
namespace vlmest::eager {

/// What a pooling kernel copies first: an argument that is not dense in its own layout, row-major or with the channels
/// next to each other.
inline Bytes pool_copy(const Value& x) {
  if (is_contiguous(x)) return Bytes{};
  Shape dense = is_channels_last(x) ? channels_last_strides(x.shape()) : contiguous_strides(x.shape());
  if (x.size(0) == 1) dense[0] = x.tensor().strides[0];
  return x.tensor().strides == dense ? Bytes{} : data_bytes(x);
}

/// A result of shape s in the layout of x.
inline TensorId pooled_result(const Value& x, DType t, const Shape& s, const char* name) {
  Builder& b = x.builder();
  return is_channels_last(x) ? b.result(t, s, channels_last_strides(s), name) : b.result(t, s, name);
}

/// The gradient of x: a kernel over the result's, which is copied to the layout of x where it has another one; x is
/// made dense again, unless its layout alone is asked for.
inline Value pool_backward(const char* name, Gradients& g, const Value& x, bool reads = true) {
  const Value& y = g.in[0];
  const DType t = y.dtype();
  const bool alike = is_channels_last(x) ? is_channels_last(y) && pool_copy(y) == Bytes{} : is_contiguous(y);
  const Bytes own = alike ? Bytes{} : data_bytes(y), argument = reads ? pool_copy(x) : Bytes{}, copy = own + argument,
              whole = data_bytes(x);
  const TensorId into = pooled_result(x, t, x.shape(), name);
  const MemoryOp op{.read = data_bytes(y) + copy,
                    .written = whole + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = 1 + (own > Bytes{} ? 1 : 0) + (argument > Bytes{} ? 1 : 0)};
  return emit1(y.builder(), name, op, into, {own, argument}, g.in[0]);
}

/// torch.nn.AvgPool2d with a stride of its kernel's size (aten/src/ATen/native/cuda/AveragePool2d.cu).
inline Value avg_pool2d(Value a, std::int64_t kernel) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s{a.size(0), a.size(1), a.size(2) / kernel, a.size(3) / kernel};
  const TensorId r = pooled_result(a, t, s, "avg_pool2d");
  const GradEdge e = edge(a);
  const Value x = saved(a, static_cast<bool>(e));
  const Bytes copy = pool_copy(a);
  const MemoryOp op{.read = data_bytes(a) + copy,
                    .written = size_of(numel(s), t) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = copy > Bytes{} ? 2 : 1};
  Value out = emit1(b, "avg_pool2d", op, r, {copy}, a);
  differentiable(out, "AvgPool2DBackward0", {e},
                 [x](Gradients& g) { g.out[0] = pool_backward("avg_pool2d_backward", g, x); });
  return out;
}

/// x.mean((2, 3), keepdim=True) of x[N, C, H, W], which adaptive_avg_pool2d to one place is too
/// (aten/src/ATen/native/AdaptiveAveragePooling.cpp, adaptive_avg_pool2d_symint).
inline Value mean_of_maps(Value a) {
  const DType t = a.dtype();
  std::array<bool, Shape::max_rank> reduced{};
  reduced[2] = reduced[3] = true;
  const ReductionScratch split = reduction_scratch(a.tensor(), reduced, is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  const GradEdge e = edge(a);
  const Shape s{a.size(0), a.size(1), 1, 1};
  Value r = reduce("mean.dim", t, s, std::move(a), {}, 1, split);
  differentiable(r, "MeanBackward1", {e}, [whole = e.shape](Gradients& g) {
    Value wide = expand(g.in[0], whole);
    const DType u = wide.dtype();
    g.out[0] = pointwise("div.Scalar", u, std::move(wide));
  });
  return r;
}

/// torch.nn.functional.adaptive_avg_pool2d of x[C, rows, cols], or [N, C, rows, cols], to another size: read by
/// strides, but of several pictures made row-major first where channels do not lie last; their result has their layout
/// (aten/src/ATen/native/cuda/AdaptiveAveragePooling.cu, adaptive_avg_pool2d_out_cuda_template).
inline Value adaptive_avg_pool2d(Value x, std::int64_t rows, std::int64_t cols) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  Shape s = x.shape();
  s[s.rank() - 2] = rows;
  s[s.rank() - 1] = cols;
  constexpr const char* name = "_adaptive_avg_pool2d";
  const TensorId r = s.rank() == 4 ? pooled_result(x, t, s, name) : b.result(t, s, name);
  const GradEdge e = edge(x);
  const Value kept = saved(x, static_cast<bool>(e));
  const Bytes copy = s.rank() == 4 && !is_channels_last(x) && !is_contiguous(x) ? data_bytes(x) : Bytes{};
  const MemoryOp op{.read = data_bytes(x) + copy,
                    .written = size_of(numel(s), t) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = copy > Bytes{} ? 2 : 1};
  Value out = emit1(b, name, op, r, {copy}, x);
  differentiable(out, "AdaptiveAvgPool2DBackward0", {e},
                 [kept](Gradients& g) { g.out[0] = pool_backward("_adaptive_avg_pool2d_backward", g, kept, false); });
  return out;
}

/// torch.nn.MaxPool2d with a stride of its kernel's size: the places of the largest come with them, int64
/// (aten/src/ATen/native/cuda/DilatedMaxPool2d.cu).
inline Value max_pool2d(Value a, std::int64_t kernel) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Shape s{a.size(0), a.size(1), a.size(2) / kernel, a.size(3) / kernel};
  const std::array<TensorId, 2> outs{pooled_result(a, t, s, "max_pool2d_with_indices"),
                                     pooled_result(a, DType::int64, s, "indices")};
  const GradEdge e = edge(a);
  const Value x = saved(a, static_cast<bool>(e));
  const Bytes copy = pool_copy(a);
  const MemoryOp op{.read = data_bytes(a) + copy,
                    .written = size_of(numel(s), t) + size_of(numel(s), DType::int64) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = copy > Bytes{} ? 2 : 1};
  b.emit("max_pool2d_with_indices", op, std::array<TensorId, 1>{a.id()}, outs, {copy});
  Value out(b, outs[0]), places(b, outs[1]);
  differentiable(out, "MaxPool2DWithIndicesBackward0", {e},
                 [x, at = saved(places, static_cast<bool>(e))](Gradients& g) {
                   g.out[0] = pool_backward("max_pool2d_with_indices_backward", g, x);
                 });
  a.reset();
  return out;
}

}  // namespace vlmest::eager
