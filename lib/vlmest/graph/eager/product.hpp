// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/data.hpp>

/// Matrix products, softmax, layer norm.
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

/// A product of nothing reads nothing: of no rows or columns it is nothing, of no terms zeros, or the bias
/// (aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl).
inline Op product_op(const Matmul& op) {
  if (op.m > 0 && op.n > 0 && op.k > 0) return op;
  const Bytes written = size_of(Elements(checked_mul(op.m, op.n)), op.dtype);
  return MemoryOp{.written = written, .dtype = op.dtype, .kernels = written > Bytes{} ? 1 : 0};
}

/// An operand whose rows or columns are one that is repeated is written out first (aten/src/ATen/native/cuda/Blas.cpp,
/// prepare_matrix_for_cublas).
inline Bytes repeated_copy(const Value& v) {
  const Tensor& t = v.tensor();
  const bool repeats = (t.strides[0] == 0 && t.shape[0] > 1) || (t.strides[1] == 0 && t.shape[1] > 1);
  return repeats ? data_bytes(v) : Bytes{};
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
  const Op run = product_op(op);
  const Bytes first_copy = repeated_copy(a), second_copy = repeated_copy(b);
  Value out = op.bias ? emit1(g, product("addmm"), run, r, {first_copy, second_copy}, bias, a, b)
                      : emit1(g, product("mm"), run, r, {first_copy, second_copy}, a, b);
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
/// The same added to bias[batch, m, n], which is copied into the result first (aten/src/ATen/native/LinearAlgebra.cpp,
/// baddbmm_out_cuda_impl).
inline Value baddbmm(Value bias, Value a, Value b) {
  const AutocastCall call(CastPolicy::lower, bias, a, b);
  Builder& g = a.builder();
  const DType t = a.dtype();
  const Matmul op{.batch = a.size(0),
                  .m = a.size(1),
                  .n = b.size(2),
                  .k = a.size(2),
                  .dtype = t,
                  .bias = true,
                  .lda = leading_dimension(a.tensor()),
                  .ldb = leading_dimension(b.tensor())};
  const TensorId r = g.result(t, Shape{op.batch, op.m, op.n}, "baddbmm");
  const GradEdge ec = edge(bias), ea = edge(a), eb = edge(b);
  const Value sa = saved(a, static_cast<bool>(eb)), sb = saved(b, static_cast<bool>(ea));
  Value out = emit1(g, "baddbmm", op, r, {}, bias, a, b);
  differentiable(out, "BaddbmmBackward0", {ec, ea, eb}, [sa, sb](Gradients& d) {
    if (d.wants(1)) d.out[1] = bmm(d.in[0], transpose(sb, 1, 2));
    if (d.wants(2)) d.out[2] = bmm(transpose(sa, 1, 2), d.in[0]);
    if (d.wants(0)) d.out[0] = d.in[0];
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

/// aten _softmax_backward_data: the product of gradient and result is scratch, dense with its dimensions in the
/// gradient's order, and packed where that is not row-major (aten/src/ATen/native/cuda/SoftMax.cu,
/// softmax_backward_cuda_out).
inline Value softmax_backward(DType t, Value gradient, Value result) {
  Builder& b = gradient.builder();
  Tensor dense = gradient.tensor();
  dense.strides = strides_like(dense, dense.shape);
  const Bytes product = data_bytes(gradient), packed = is_contiguous(dense) ? Bytes{} : product;
  const TensorId r = b.result(t, gradient.shape(), "_softmax_backward_data");
  const MemoryOp op{.read = product * 4,
                    .written = product + size_of(numel(gradient.shape()), t),
                    .workspace = product + packed,
                    .dtype = t,
                    .kernels = packed > Bytes{} ? 3 : 2};
  return emit1(b, "_softmax_backward_data", op, r, {product, packed}, gradient, result);
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

}  // namespace vlmest::eager
