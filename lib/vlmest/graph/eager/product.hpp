// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/data.hpp>
#include <vlmest/library/convolution.hpp>

/// Matrix products, convolution, softmax, layer norm.
namespace vlmest::eager {

/// A matrix whose columns lie one after another.
inline bool column_major(const Tensor& t) { return t.strides[0] == 1 && t.strides[1] == t.shape[0]; }

/// Elements from one row, or column, of each matrix to the next, where the other direction is dense (cuBLAS' leading
/// dimension; aten/src/ATen/native/cuda/Blas.cpp, prepare_matrix_for_cublas); 0 where there is but one.
inline std::int64_t leading_dimension(const Tensor& t) {
  const int row = t.shape.rank() - 2, column = row + 1;
  const bool by_columns = t.strides[row] == 1 && t.strides[column] >= t.shape[row];
  const int along = by_columns ? column : row;
  return t.shape[along] == 1 ? 0 : t.strides[along];
}

/// a[m, k] x b[k, n]; `bias` may be empty (then mm, else addmm).
inline Value mm(Value a, Value b, Value bias = {}) {
  const AutocastCall call(CastPolicy::lower, bias, a, b);
  Builder& g = a.builder();
  const DType t = a.dtype();
  const Matmul op{.m = a.size(0),
                  .n = b.size(1),
                  .k = a.size(1),
                  .dtype = t,
                  .bias = static_cast<bool>(bias),
                  .lda = leading_dimension(a.tensor()),
                  .ldb = leading_dimension(b.tensor())};
  const TensorId r = g.result(t, Shape{op.m, op.n}, bias ? "addmm" : "mm");
  const GradEdge ea = edge(a), eb = edge(b), ec = edge(bias);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, static_cast<bool>(ea));
  const bool columns_a = column_major(a.tensor()), columns_b = column_major(b.tensor());
  Value out = op.bias ? emit1(g, product("addmm"), op, r, {}, bias, a, b) : emit1(g, product("mm"), op, r, {}, a, b);
  // mm_mat1_backward, mm_mat2_backward: the gradient of a column-major matrix is column-major too. Without a bias the
  // second operand's gradient is computed first, with one the first's.
  differentiable(
      out, op.bias ? "AddmmBackward0" : "MmBackward0", {ea, eb, ec},
      [sa, sb, columns_a, columns_b, biased = op.bias](Gradients& d) {
        const auto first = [&] {
          if (!d.wants(0)) return;
          d.out[0] = columns_a ? transpose(mm(sb, transpose(d.in[0], 0, 1)), 0, 1) : mm(d.in[0], transpose(sb, 0, 1));
        };
        const auto second = [&] {
          if (!d.wants(1)) return;
          d.out[1] = columns_b ? transpose(mm(transpose(d.in[0], 0, 1), sa), 0, 1) : mm(transpose(sa, 0, 1), d.in[0]);
        };
        if (biased) first();
        second();
        if (!biased) first();
        if (d.wants(2)) d.out[2] = d.in[0];
      });
  return out;
}
/// a[batch, m, k] x b[batch, k, n].
inline Value bmm(Value a, Value b) {
  const AutocastCall call(CastPolicy::lower, a, b);
  Builder& g = a.builder();
  const DType t = a.dtype();
  const Matmul op{.batch = a.size(0),
                  .m = a.size(1),
                  .n = b.size(2),
                  .k = a.size(2),
                  .dtype = t,
                  .lda = leading_dimension(a.tensor()),
                  .ldb = leading_dimension(b.tensor())};
  const TensorId r = g.result(t, Shape{op.batch, op.m, op.n}, "bmm");
  const GradEdge ea = edge(a), eb = edge(b);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, static_cast<bool>(ea));
  Value out = emit1(g, "bmm", op, r, {}, a, b);
  differentiable(out, "BmmBackward0", {ea, eb}, [sa, sb](Gradients& d) {
    if (d.wants(1)) d.out[1] = bmm(transpose(sa, 1, 2), d.in[0]);
    if (d.wants(0)) d.out[0] = bmm(d.in[0], transpose(sb, 1, 2));
  });
  return out;
}
/// torch.matmul of two stacks of matrices of equal batch sizes: both are folded to three dimensions (a copy where the
/// layout forbids a view) and multiplied by bmm (aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl).
inline Value matmul(Value a, Value b) {
  const AutocastCall call(CastPolicy::lower, a, b);
  Shape out = a.shape();
  out[out.rank() - 1] = b.size(-1);
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const std::int64_t batch = numel(a.shape()).value() / (m * k);
  a = reshape(std::move(a), {batch, m, k});
  b = reshape(std::move(b), {batch, k, n});
  return view(bmm(std::move(a), std::move(b)), out);
}

/// torch.matmul of a stack of matrices with one matrix: the stack is folded into rows, a copy where it has gaps.
inline Value matmul_rows(Value a, Value b) {
  const AutocastCall call(CastPolicy::lower, a, b);
  Shape out = a.shape();
  out[out.rank() - 1] = b.size(-1);
  const std::int64_t k = a.size(-1), rows = numel(a.shape()).value() / k;
  a = reshape(std::move(a), {rows, k});
  return view(mm(std::move(a), std::move(b)), out);
}

inline Value softmax_backward(DType t, Value gradient, Value result);

/// softmax(x, dim=-1, dtype=out). Where the types differ the input is cast first, except that fp16 to fp32 is done by
/// the softmax kernel itself (aten/src/ATen/native/SoftMax.cpp, softmax: half_to_float).
inline Value softmax(Value a, DType out) {
  if (!(a.dtype() == DType::fp16 && out == DType::fp32)) a = to(std::move(a), out);
  Builder& b = a.builder();
  const std::int64_t width = a.size(-1);
  const Softmax op{
      .rows = width == 0 ? 0 : numel(a.shape()).value() / width, .width = width, .in = a.dtype(), .out = out};
  const TensorId r = b.result(out, a.shape(), "_softmax");
  const GradEdge e = edge(a);
  Value y = emit1(b, "_softmax", op, r, {}, a);
  differentiable(y, "SoftmaxBackward0", {e}, [s = saved_result(y, static_cast<bool>(e)), from = e.dtype](Gradients& g) {
    g.out[0] = softmax_backward(from, g.in[0], s);
  });
  return y;
}
/// softmax(x, dim=-1): in the type of x.
inline Value softmax(Value a) {
  const DType out = autocast_result(a, a.dtype());
  return softmax(std::move(a), out);
}

/// aten _softmax_backward_data: the product of gradient and result is scratch
/// (aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out).
inline Value softmax_backward(DType t, Value gradient, Value result) {
  Builder& b = gradient.builder();
  const Bytes product = data_bytes(gradient);
  const TensorId r = b.result(t, gradient.shape(), "_softmax_backward_data");
  const MemoryOp op{.read = product * 4,
                    .written = product + size_of(numel(gradient.shape()), t),
                    .workspace = product,
                    .dtype = t,
                    .kernels = 2};
  return emit1(b, "_softmax_backward_data", op, r, {product}, gradient, result);
}

/// aten _safe_softmax over the last dimension, same type.
inline Value safe_softmax(Value a) {
  Builder& b = a.builder();
  const std::int64_t width = a.size(-1), rows = width == 0 ? 0 : numel(a.shape()).value() / width;
  const DType t = a.dtype();
  const TensorId r = b.result(t, a.shape(), "_safe_softmax");
  const GradEdge e = edge(a);
  Value y = emit1(b, "_safe_softmax", Softmax{.rows = rows, .width = width, .in = t, .out = t, .safe = true}, r,
                  {size_of(Elements(rows * width), DType::boolean), size_of(Elements(rows), DType::boolean),
                   size_of(Elements(1), t)},
                  a);
  differentiable(y, "SafeSoftmaxBackward0", {e}, [s = saved_result(y, static_cast<bool>(e)), t](Gradients& g) {
    g.out[0] = softmax_backward(t, g.in[0], s);
  });
  return y;
}

void layer_norm_backward(const Norm& op, Gradients& g, const Value& x, const Value& weight, const Value& mean,
                         const Value& rstd);  // gradient.hpp
void convolution_backward(const Convolution& op, Gradients& g, const Value& x, const Value& weight, Bytes scratch,
                          bool keeps_layout = true);

/// native_layer_norm over the last dimension. A non-contiguous input is first copied
/// (aten/src/ATen/native/cuda/layer_norm_kernel.cu, layer_norm_cuda: expect_contiguous).
inline Value layer_norm(Value a, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::fp32, a, weight, bias);
  Builder& b = a.builder();
  const DType t = a.dtype();
  const std::int64_t width = a.size(-1);
  const Norm op{.rows = numel(a.shape()).value() / width,
                .width = width,
                .dtype = t,
                .parameters = (weight ? 1 : 0) + (bias ? 1 : 0),
                .packed = !is_contiguous(a)};
  const Bytes copy = op.packed ? data_bytes(a) : Bytes{};
  Shape stats = a.shape();
  stats[stats.rank() - 1] = 1;
  const DType acc = is_half(t) ? DType::fp32 : t;
  const TensorId out = b.result(t, a.shape(), "native_layer_norm");
  const std::array<TensorId, 3> outs{out, b.result(acc, stats, "mean"), b.result(acc, stats, "rstd")};
  const std::array<TensorId, 3> ins{a.id(), weight ? weight.id() : none, bias ? bias.id() : none};
  b.emit("native_layer_norm", op, ins, outs, {copy});
  Value r(b, out);
  Value mean(b, outs[1]), rstd(b, outs[2]);
  const GradEdge ea = edge(a), ew = edge(weight), eb = edge(bias);
  const bool any = ea || ew || eb;
  // The bias is saved too (derivatives.yaml), though its gradient does not need it.
  differentiable(r, "NativeLayerNormBackward0", {ea, ew, eb},
                 [op, x = saved(a, any), w = saved(weight, any), unread = saved(bias, any), m = saved(mean, any),
                  s = saved(rstd, any)](Gradients& g) { layer_norm_backward(op, g, x, w, m, s); });
  a.reset();
  weight.reset();
  bias.reset();
  return r;
}

/// A 2-D convolution of NCHW data. Where cuDNN converts to its own layout (library/convolution.hpp, conv_scratch),
/// input, weight and result take a kernel each (a result of one position needs none). What is not row-major is copied
/// first.
inline Value conv2d(Value x, Value weight, Value bias, std::int64_t stride) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t batch = x.size(0), ci = x.size(1), co = weight.size(0), kh = weight.size(2), kw = weight.size(3);
  const std::int64_t oh = (x.size(2) - kh) / stride + 1, ow = (x.size(3) - kw) / stride + 1;
  Convolution op{.batch = batch,
                 .in_channels = ci,
                 .out_channels = co,
                 .in_positions = checked_mul(x.size(2), x.size(3)),
                 .out_positions = checked_mul(oh, ow),
                 .kernel = checked_mul(kh, kw),
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  const TensorId r = b.result(t, Shape{batch, co, oh, ow}, "convolution");
  const Bytes own = conv_scratch(op, x.size(2)), rows = is_contiguous(x) ? Bytes{} : data_bytes(x);
  op.workspace = rows + own;
  op.kernels = (own > Bytes{} ? (op.out_positions > 1 ? 4 : 3) : 1) + (bias ? 1 : 0) + (rows > Bytes{} ? 1 : 0);
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {rows, own}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb}, [op, sx, sw, rows](Gradients& g) {
    // A gradient or an input that is not row-major is copied first (aten/src/ATen/native/Convolution.cpp).
    const Bytes copy = is_contiguous(g.in[0]) ? Bytes{} : data_bytes(g.in[0]);
    convolution_backward(op, g, sx, sw, copy + rows + conv_weight_gradient_scratch(op), false);
  });
  return out;
}

/// A 2-D convolution of squares of their own, x[N, C, S, S] with channels last, by a kernel of that size: cuDNN gets
/// the weight in the same layout, by a copy (aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward); the
/// result keeps it.
inline Value conv2d_channels_last(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t n = x.size(0), taps = checked_mul(weight.size(2), weight.size(3));
  Convolution op{.batch = n,
                 .in_channels = x.size(1),
                 .out_channels = weight.size(0),
                 .in_positions = taps,
                 .out_positions = 1,
                 .kernel = taps,
                 .dtype = t,
                 .bias = static_cast<bool>(bias)};
  const Bytes copy = taps > 1 ? data_bytes(weight) : Bytes{}, own = channels_last_scratch(op, b.gpu);
  op.workspace = copy + own;
  op.kernels = 1 + (bias ? 1 : 0) + (copy > Bytes{} ? 1 : 0) + (splits_result(op, b.gpu) ? 1 : 0);
  const TensorId r = b.result(t, Shape{n, op.out_channels, 1, 1}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {copy, own}, x, weight, bias);
  // A copy of the result's gradient and a counter with its alignment (recorded with 256 and 768 rows).
  const Bytes scratch = size_of(Elements(checked_mul(n, op.out_channels)), t) + Bytes(4 + 127);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb},
                 [op, sx, sw, scratch](Gradients& g) { convolution_backward(op, g, sx, sw, scratch); });
  return out;
}

/// A 3-D convolution whose kernel covers its whole input: x[N, C, T, H, W] with weight[O, C, T, H, W] to
/// [N, O, 1, 1, 1]. The Qwen line's patch embedding. cuDNN needs no scratch for it (recorded peaks).
inline Value patch_conv3d(Value x, Value weight, Value bias) {
  const AutocastCall call(CastPolicy::lower, x, weight, bias);
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t n = x.size(0), taps = checked_mul(checked_mul(weight.size(2), weight.size(3)), weight.size(4));
  const Convolution op{.batch = n,
                       .in_channels = x.size(1),
                       .out_channels = weight.size(0),
                       .in_positions = taps,
                       .out_positions = 1,
                       .kernel = taps,
                       .dtype = t,
                       .bias = static_cast<bool>(bias),
                       .kernels = bias ? 2 : 1};
  const TensorId r = b.result(t, Shape{n, op.out_channels, 1, 1, 1}, "convolution");
  const GradEdge ex = edge(x), ew = edge(weight), eb = edge(bias);
  const bool any = ex || ew || eb;
  const Value sx = saved(x, any), sw = saved(weight, any);
  Value out = emit1(b, "convolution", op, r, {}, x, weight, bias);
  differentiable(out, "ConvolutionBackward0", {ex, ew, eb},
                 [op, sx, sw](Gradients& g) { convolution_backward(op, g, sx, sw, patch_gradient_scratch(op)); });
  return out;
}

}  // namespace vlmest::eager
