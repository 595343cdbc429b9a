// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <kernels/attention/cudnn_descriptor.hpp>

#include <vlmest/op/attention.hpp>

namespace vlmest::kernels::attention {

/// Attention as cuDNN 9's engines expect it, operation by operation ("Fused attention fprop" of its developer guide;
/// order and types as NVIDIA's cudnn-frontend composes them for releases before 9.21, whose attention descriptor takes
/// no mask). Needs no device.
class CudnnAttentionGraph {
 public:
  /// Numbers of the tensors that a call gives addresses for; scalars are host addresses.
  enum Id : std::int64_t { q = 1, k, v, out, scale, hidden, kv_len, q_len, first_virtual };

  explicit CudnnAttentionGraph(const Attention& op)
      : op_(op), element_(op.dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF) {
    const std::int64_t tokens = op.q_len;
    const std::int64_t keys = op.kv_len;
    const CudnnDescriptor queries = matrices(Id::q, op.heads, tokens, op.head_dim, false);
    const CudnnDescriptor keys_transposed = matrices(Id::k, op.kv_heads, op.head_dim, keys, true);
    const CudnnDescriptor values = matrices(Id::v, op.kv_heads, keys, op.v_dim, false);
    const CudnnDescriptor outputs = matrices(Id::out, op.heads, tokens, op.v_dim, false);

    const CudnnDescriptor product = between(keys);
    matmul(queries, keys_transposed, product);
    CudnnDescriptor scores = between(keys);
    pointwise(CUDNN_POINTWISE_MUL, product, scalar(Id::scale, CUDNN_DATA_FLOAT), scores);
    if (op.causal) scores = masked(scores);
    const CudnnDescriptor largest = between(1);
    reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    const CudnnDescriptor shifted = between(keys);
    pointwise(CUDNN_POINTWISE_SUB, scores, largest, shifted);
    const CudnnDescriptor exponentials = between(keys);
    pointwise(CUDNN_POINTWISE_EXP, shifted, exponentials);
    const CudnnDescriptor sum = between(1);
    reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    // The logarithm of a row's sum of exponentials, which a backward would read. Nothing does here, and it is never
    // written, but engines do not recognise the graph without it.
    const CudnnDescriptor logarithm = between(1);
    pointwise(CUDNN_POINTWISE_LOG, sum, logarithm);
    const CudnnDescriptor statistic = between(1);
    pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, statistic);
    const CudnnDescriptor probabilities = between(keys, element_);
    pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
    matmul(probabilities, values, outputs);
  }

  /// All operations, in the order in which they depend on each other, as one finalised graph.
  CudnnDescriptor finalised(cudnnHandle_t handle) const {
    std::vector<cudnnBackendDescriptor_t> all;
    for (const CudnnDescriptor& operation : operations_) all.push_back(operation.get());
    CudnnDescriptor r(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    r.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const cudnnBackendDescriptor_t>(all));
    if (handle) r.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    r.finalise();
    return r;
  }

 private:
  /// [batch, heads, rows, columns], contiguous; `transposed`: its columns lie contiguous in memory.
  CudnnDescriptor matrices(Id id, std::int64_t heads, std::int64_t rows, std::int64_t columns, bool transposed) const {
    CudnnTensor t{.sizes = {op_.batch, heads, rows, columns}, .type = element_};
    t.strides = {heads * rows * columns, rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
    return t.described(id);
  }
  /// A virtual tensor with `columns` values for each row of scores.
  CudnnDescriptor between(std::int64_t columns, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    CudnnTensor t{.sizes = {op_.batch, op_.heads, op_.q_len, columns}, .type = type, .is_virtual = true};
    const std::int64_t matrix = op_.q_len * columns;
    t.strides = {op_.heads * matrix, matrix, columns, 1};
    return t.described(next_++);
  }
  static CudnnDescriptor scalar(Id id, cudnnDataType_t type) {
    return CudnnTensor{.type = type, .is_by_value = true}.described(id);
  }

  void matmul(const CudnnDescriptor& a, const CudnnDescriptor& b, const CudnnDescriptor& c) {
    CudnnDescriptor kind(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalise();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
        .finalise();
    keep(std::move(kind), std::move(operation));
  }
  void reduce(cudnnReduceTensorOp_t how, const CudnnDescriptor& x, const CudnnDescriptor& y) {
    CudnnDescriptor kind(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, how).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finalise();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
        .finalise();
    keep(std::move(kind), std::move(operation));
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;
    Pointwise(cudnnPointwiseMode_t m) : mode(m) {}
    Pointwise(cudnnPointwiseMode_t m, cudnnDataType_t c, std::int64_t a = -1) : mode(m), compute(c), axis(a) {}
  };
  void pointwise(Pointwise p, const CudnnDescriptor& x, const CudnnDescriptor* b, const CudnnDescriptor* t,
                 const CudnnDescriptor& y) {
    CudnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, p.mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, p.compute);
    if (p.axis >= 0) kind.set(CUDNN_ATTR_POINTWISE_AXIS, p.axis);
    kind.finalise();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (t) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalise();
    keep(std::move(kind), std::move(operation));
  }
  void pointwise(Pointwise p, const CudnnDescriptor& x, const CudnnDescriptor& y) {
    pointwise(p, x, nullptr, nullptr, y);
  }
  void pointwise(Pointwise p, const CudnnDescriptor& x, const CudnnDescriptor& b, const CudnnDescriptor& y) {
    pointwise(p, x, &b, nullptr, y);
  }

  /// Scores whose row (from the bottom: the queries are the last positions) lies at or below their column; minus
  /// infinity for the others.
  CudnnDescriptor masked(const CudnnDescriptor& scores) {
    const std::int64_t keys = op_.kv_len;
    CudnnDescriptor rows = between(keys, CUDNN_DATA_INT32);
    pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2}, scores, rows);
    const CudnnDescriptor columns = between(keys, CUDNN_DATA_INT32);
    pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3}, scores, columns);
    if (op_.q_len != op_.kv_len) {
      CudnnDescriptor later = between(keys, CUDNN_DATA_INT32);
      pointwise({CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, 3}, rows, scalar(Id::kv_len, CUDNN_DATA_INT32), later);
      CudnnDescriptor positions = between(keys, CUDNN_DATA_INT32);
      pointwise({CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, 3}, later, scalar(Id::q_len, CUDNN_DATA_INT32), positions);
      rows = std::move(positions);
    }
    const CudnnDescriptor visible = between(keys, CUDNN_DATA_BOOLEAN);
    pointwise({CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN}, rows, columns, visible);
    CudnnDescriptor r = between(keys);
    const CudnnDescriptor infinity = scalar(Id::hidden, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, &infinity, &visible, r);
    return r;
  }

  void keep(CudnnDescriptor kind, CudnnDescriptor operation) {
    kinds_.push_back(std::move(kind));
    operations_.push_back(std::move(operation));
  }

  Attention op_;
  cudnnDataType_t element_;
  std::int64_t next_ = first_virtual;
  std::vector<CudnnDescriptor> kinds_, operations_;
};

}  // namespace vlmest::kernels::attention
