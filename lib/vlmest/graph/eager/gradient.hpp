// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/attention.hpp>

/// Ops that only backward passes run (tools/autograd/derivatives.yaml, torch/csrc/autograd/FunctionsManual.cpp).
namespace vlmest::eager {

/// at::sum_to: broadcast dimensions are summed in one reduction, then leading ones are dropped.
inline Value sum_to(Value gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  Shape kept = gradient.shape();
  const int lead = kept.rank() - shape.rank();
  bool reduces = false, last = false;
  std::int64_t inputs = 1;
  for (int i = 0; i < kept.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && kept[i] != 1)) {
      inputs = checked_mul(inputs, kept[i]);
      kept[i] = 1;
      reduces = true;
      last = i == kept.rank() - 1;
    }
  Value r = gradient;
  if (reduces) {
    // As a matrix whose rows or columns are added up.
    const std::int64_t outputs = numel(kept).value();
    const DType t = gradient.dtype();
    const Shape flat = last ? Shape{outputs, inputs} : Shape{inputs, outputs};
    const Tensor matrix{.shape = flat, .strides = contiguous_strides(flat), .dtype = t};
    const ReductionScratch split = reduction_scratch(matrix, last ? 1 : 0, is_half(t) ? 4 : bits(t) / 8);
    r = reduce("sum.dim_IntList", t, kept, gradient, {}, 1, split);
  }
  gradient.reset();
  return lead > 0 ? view(std::move(r), shape) : r;
}

/// A tensor of zeros with the gradient copied into a part of it: aten slice_backward, select_backward.
inline Value embed_gradient(const char* name, Value gradient, const Shape& whole) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const Bytes part = data_bytes(gradient);
  const TensorId r = b.result(t, whole, name);
  return emit1(b, name, MemoryOp{.read = part, .written = size_of(numel(whole), t) + part, .dtype = t, .kernels = 2}, r, {}, gradient);
}
inline Value slice_backward(Value gradient, const Shape& whole, int, std::int64_t, std::int64_t, std::int64_t) {
  return embed_gradient("slice_backward", std::move(gradient), whole);
}
inline Value select_backward(Value gradient, const Shape& whole, int, std::int64_t) {
  return embed_gradient("select_backward", std::move(gradient), whole);
}

/// A dense gradient of the whole table, zeroed and added to by rows (aten/src/ATen/native/cuda/Embedding.cu,
/// embedding_dense_backward_cuda; up to 3072 rows without sorting).
inline Value embedding_dense_backward(Value gradient, Value rows, const Shape& table) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const TensorId r = b.result(t, table, "embedding_dense_backward");
  const Bytes n = size_of(numel(table), t);
  return emit1(b, "embedding_dense_backward", MemoryOp{.read = data_bytes(gradient) + data_bytes(rows), .written = n, .dtype = t, .kernels = 2}, r, {}, gradient, rows);
}
inline Value masked_fill(Value a, Value mask) {
  const DType t = a.dtype();
  return pointwise("masked_fill.Scalar", t, std::move(a), std::move(mask));
}
/// masked_scatter_backward: the masked elements of the gradient, found by nonzero, one int64 for each element and
/// dimension (FunctionsManual.cpp, masked_scatter_backward_symint: masked_select).
inline Value masked_scatter_backward(Value gradient, Value mask, const Shape& source) {
  Builder& b = gradient.builder();
  const DType t = gradient.dtype();
  const std::int64_t n = numel(gradient.shape()).value();
  const Bytes flags = Bytes(n), picked = size_of(numel(source), t);
  const Bytes indices = size_of(numel(source), DType::int64) * gradient.shape().rank();
  const TensorId r = b.result(t, source, "masked_scatter_backward");
  const MemoryOp op{.read = data_bytes(gradient) + flags * 2 + indices, .written = picked + flags + indices, .workspace = indices, .dtype = t, .kernels = 6};
  return emit1(b, "masked_scatter_backward", op, r, {indices}, gradient, mask);
}

/// native_layer_norm_backward: gradients of the input, the weight and the bias, as far as they are wanted.
inline void layer_norm_backward(const Norm& op, Gradients& g, const Value& x, const Value& weight, const Value& mean, const Value& rstd) {
  Builder& b = x.builder();
  const DType t = op.dtype;
  std::vector<TensorId> outs;
  std::vector<std::size_t> to;
  const auto result = [&](std::size_t i, const Shape& s, const char* name) {
    if (!g.wants(i)) return;
    outs.push_back(b.result(t, s, name));
    to.push_back(i);
  };
  result(0, x.shape(), "input gradient");
  result(1, Shape{op.width}, "weight gradient");
  result(2, Shape{op.width}, "bias gradient");
  const std::array<TensorId, 5> ins{g.in[0].id(), x.id(), mean.id(), rstd.id(), weight ? weight.id() : none};
  const Bytes rows = data_bytes(x);
  const Bytes copy = (is_contiguous(x) ? Bytes{} : rows) + (is_contiguous(g.in[0]) ? Bytes{} : rows);
  b.emit("native_layer_norm_backward", MemoryOp{.read = rows * 4, .written = rows, .workspace = copy, .dtype = t, .kernels = g.wants(1) ? 2 : 1}, ins, outs, {copy});
  for (std::size_t i = 0; i < outs.size(); ++i) g.out[to[i]] = Value(b, outs[i]);
}

/// convolution_backward: gradients of the input (where wanted), the weight and the bias.
inline void convolution_backward(const Convolution& op, Gradients& g, const Value& x, const Value& weight, Bytes scratch) {
  Builder& b = x.builder();
  const DType t = op.dtype;
  std::vector<TensorId> outs;
  std::vector<std::size_t> to;
  const auto result = [&](std::size_t i, const Shape& s, const char* name) {
    if (!g.wants(i)) return;
    outs.push_back(b.result(t, s, name));
    to.push_back(i);
  };
  result(0, x.shape(), "input gradient");
  result(1, weight.shape(), "weight gradient");
  result(2, Shape{op.out_channels}, "bias gradient");
  const std::array<TensorId, 3> ins{g.in[0].id(), x.id(), weight.id()};
  Convolution back = op;
  back.workspace = scratch;
  b.emit("convolution_backward", back, ins, outs, {scratch});
  for (std::size_t i = 0; i < outs.size(); ++i) g.out[to[i]] = Value(b, outs[i]);
}

/// The backward of cuDNN's attention: gradients of q, k and v in their layouts; an fp32 accumulator of dq and row sums,
/// and for grouped queries dk and dv of every query head, are scratch (agrees with recorded peaks).
inline void cudnn_attention_backward(const Attention& op, Gradients& g, const Value& q, const Value& k, const Value& v, const Value& mask,
                                     const Value& out, const Value& lse, const Value& seed, const Value& offset) {
  Builder& b = q.builder();
  const auto like = [&](const Value& x, const char* name) { return b.result(op.dtype, x.shape(), strides_like(x.tensor(), x.shape()), name); };
  const std::array<TensorId, 3> outs{like(q, "dq"), like(k, "dk"), like(v, "dv")};
  const std::array<TensorId, 9> ins{g.in[0].id(), q.id(), k.id(), v.id(), out.id(), lse.id(), seed.id(), offset.id(), mask ? mask.id() : none};
  const std::int64_t rows = checked_mul(checked_mul(op.batch, op.heads), op.q_len);
  Bytes scratch = size_of(Elements(checked_mul(rows, op.head_dim)), DType::fp32) + size_of(Elements(rows), DType::fp32) + Bytes(256);
  if (op.heads != op.kv_heads)
    scratch += size_of(Elements(checked_mul(checked_mul(checked_mul(op.batch, op.heads), op.kv_len), op.head_dim + op.v_dim)), op.dtype);
  b.emit("_scaled_dot_product_cudnn_attention_backward", AttentionBackward{op}, ins, outs, {scratch});
  for (std::size_t i = 0; i < 3; ++i) {
    Value gradient(b, outs[i]);
    if (g.wants(i)) g.out[i] = std::move(gradient);
  }
}

/// The backward of taking a tensor apart: its parts' gradients are concatenated or stacked again; a part that nothing
/// flows from counts as zeros.
inline void join_gradients(const char* name, const std::vector<Value>& parts, const GradEdge& whole, int dim, bool stacked) {
  Builder& b = parts.front().builder();
  std::vector<Shape> shapes;
  for (const auto& p : parts) shapes.push_back(p.shape());
  GradCall call{.name = name, .inputs = {whole}, .run = [shapes, dim, stacked, t = whole.dtype](Gradients& g) {
                  Builder* at = nullptr;
                  for (auto& x : g.in)
                    if (x) at = &x.builder();
                  for (std::size_t i = 0; i < g.in.size(); ++i)
                    if (!g.in[i]) g.in[i] = fill(*at, "zeros", shapes[i], t);
                  g.out[0] = stacked ? stack(g.in, dim) : cat(std::span<Value>(g.in), dim);
                }};
  b.differentiable(std::move(call), parts);
}

}  // namespace vlmest::eager
