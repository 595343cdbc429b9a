// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/product.hpp>

/// Triangular matrices: their parts, and systems that they make.
namespace vlmest::eager {

/// torch.triu, torch.tril over the last two dimensions: one kernel reads and writes every element
/// (aten/src/ATen/native/cuda/TriangularOps.cu).
inline Value triangle(const char* name, Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const Bytes n = data_bytes(a);
  const TensorId r = b.result(t, a.shape(), name);
  return emit1(b, name, MemoryOp{.read = n, .written = n, .dtype = t}, r, {}, a);
}

/// The last two dimensions swapped.
inline Value matrix_transpose(Value a) {
  const int rank = a.shape().rank();
  return transpose(std::move(a), rank - 2, rank - 1);
}

/// A matrix that cuBLAS can read as it lies: rows or columns without gaps, whatever lies between matrices.
inline bool is_packed_matrix(const Tensor& t) {
  return (t.strides[-1] == 1 && t.strides[-2] == t.shape[-1]) || (t.strides[-2] == 1 && t.strides[-1] == t.shape[-2]);
}

/// torch.linalg.solve_triangular(a[..., n, n], b[..., n, m]) of equal batches: b is copied into the result, whose
/// columns lie one after another, and solved there. Up to 512 rows (or 63 of up to 8 matrices) one cuBLAS call takes
/// all matrices by two lists of addresses, which a kernel each fills; up to 8 larger ones take a call each
/// (aten/src/ATen/native/BatchLinearAlgebra.cpp, linalg_solve_triangular_out; cuda/BatchLinearAlgebra.cpp,
/// triangular_solve_kernel). Which half of `a` is read changes nothing here.
inline Value solve_triangular(Value a, Value b) {
  Builder& g = b.builder();
  const DType t = b.dtype();
  const Shape s = b.shape();
  const int rank = s.rank();
  const std::int64_t n = a.size(-1), batch = numel(a.shape()).value() / (n * n);
  if (n > 512)
    throw Error("solve_triangular", "systems of more than 512 rows are not modelled", "use fewer rows in a system");
  const bool listed = batch > 8 || n < 64;
  const Bytes copied = is_packed_matrix(a.tensor()) ? Bytes{} : data_bytes(a);
  const Bytes list = listed ? size_of(Elements(batch), DType::int64) : Bytes{};
  const TriangularSolve op{
      .batch = batch, .rows = n, .columns = b.size(-1), .dtype = t, .packed = copied > Bytes{}, .listed = listed};
  Shape strides = contiguous_strides(s);
  strides[rank - 2] = 1;
  strides[rank - 1] = n;
  const GradEdge ea = edge(a), eb = edge(b);
  const Value sa = saved(a, ea || eb);
  const TensorId r = g.result(t, s, strides, "linalg_solve_triangular");
  Value x = emit1(g, "linalg_solve_triangular", op, r, {list, list, copied}, a, b);
  // FunctionsManual.cpp, linalg_solve_triangular_backward: of the right-hand side a second system, of the matrix its
  // product with the result, of which the half that was read is kept.
  differentiable(x, "LinalgSolveTriangularBackward0", {ea, eb},
                 [sa, sx = saved_result(x, static_cast<bool>(ea))](Gradients& d) {
                   Value right = solve_triangular(matrix_transpose(sa), d.in[0]);
                   if (d.wants(0)) {
                     Value product = matmul(right, matrix_transpose(sx));
                     Value negative = neg(std::move(product));
                     d.out[0] = triangle("tril", negative);
                   }
                   if (d.wants(1)) d.out[1] = std::move(right);
                 });
  return x;
}

}  // namespace vlmest::eager
