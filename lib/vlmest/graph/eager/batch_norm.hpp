// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/graph/eager/gradient.hpp>

/// Norms over each channel of maps x[N, C, H, W]: of a batch's own numbers in training mode, of those that a module
/// kept in evaluation mode (aten/src/ATen/native/Normalization.cpp, _batch_norm_impl_index).
namespace vlmest::eager {

/// A module's parameters and what it keeps of the batches that it saw.
struct ChannelStatistics {
  Value weight, bias;
  Value mean, variance;  ///< running_mean and running_var, which training writes to
  bool trains = false;   ///< training mode
};

/// What the backward of such a norm reads.
struct SavedBatchNorm {
  Value x, weight, mean, variance, batch_mean, batch_scale;
};

/// Gradients of the maps, the weight and the bias, those that are wanted, or of cuDNN all. Torch's own kernels read by
/// strides.
inline void batch_norm_backward(const char* name, bool cudnn, Gradients& g, const SavedBatchNorm& s) {
  Builder& b = s.x.builder();
  const DType t = s.x.dtype(), of_weight = s.weight.dtype();
  std::vector<TensorId> outs;
  std::array<std::size_t, 3> to{};
  const auto result = [&](std::size_t i, DType type, const Shape& shape, const char* label) {
    if (!g.wants(i) && !cudnn) return;
    to[outs.size()] = i;
    outs.push_back(b.result(type, shape, label));
  };
  result(0, t, s.x.shape(), "input gradient");
  result(1, of_weight, s.weight.shape(), "weight gradient");
  result(2, of_weight, s.weight.shape(), "bias gradient");
  const Bytes whole = data_bytes(s.x), copy = !cudnn || is_contiguous(g.in[0]) ? Bytes{} : whole;
  const std::array<TensorId, 5> ins{g.in[0].id(), s.x.id(), s.weight.id(),
                                    s.batch_mean ? s.batch_mean.id() : s.mean.id(),
                                    s.batch_scale ? s.batch_scale.id() : s.variance.id()};
  const MemoryOp op{.read = whole * 3 + copy,
                    .written = (g.wants(0) ? whole : Bytes{}) + copy,
                    .workspace = copy,
                    .dtype = t,
                    .kernels = copy > Bytes{} ? 2 : 1};
  b.emit(name, op, ins, outs, {copy});
  for (std::size_t i = 0; i < outs.size(); ++i) {
    Value made(b, outs[i]);
    if (g.wants(to[i])) g.out[to[i]] = std::move(made);
  }
}

/// torch.nn.functional.batch_norm. In training mode kernels take the means, update what is kept and apply it
/// (aten/src/ATen/native/cuda/Normalization.cu, batch_norm_cuda_out); in evaluation mode profiles showed two of torch's
/// own for each norm. cuDNN has it for maps in fp32 (_select_batch_norm_backend leaves bf16 to torch's own kernels, and
/// fp16 where the weight is fp16).
inline Value batch_norm(Value x, ChannelStatistics s) {
  Builder& b = x.builder();
  const DType t = x.dtype(), acc = is_half(t) ? DType::fp32 : t;
  const bool cudnn = !is_half(t);
  const GradEdge ex = edge(x), ew = edge(s.weight), eb = edge(s.bias);
  const bool any = ex || ew || eb;
  const std::int64_t channels = x.size(1);
  const Shape of_batch{s.trains || !cudnn ? channels : 0};
  if (!cudnn) fill(b, "empty.memory_format", Shape{0}, DType::uint8);  // what cuDNN alone would leave for the backward
  std::vector<TensorId> outs{b.result(t, x.shape(), "batch_norm"), b.result(acc, of_batch, "save_mean"),
                             b.result(acc, of_batch, "save_invstd")};
  if (cudnn) outs.push_back(b.result(DType::uint8, Shape{0}, "reserve"));
  const Bytes n = data_bytes(x);
  const std::array<TensorId, 5> ins{x.id(), s.weight.id(), s.bias.id(), s.mean.id(), s.variance.id()};
  const MemoryOp op{.read = s.trains ? n * 2 : n, .written = n, .dtype = t, .kernels = s.trains ? 3 : (cudnn ? 1 : 2)};
  b.emit(cudnn ? "cudnn_batch_norm" : "native_batch_norm", op, ins, outs, {});
  Value r(b, outs[0]);
  const Value mean(b, outs[1]), scale(b, outs[2]);
  const SavedBatchNorm kept{saved(x, any),          saved(s.weight, any), saved(s.mean, any),
                            saved(s.variance, any), saved(mean, any),     saved(scale, any)};
  differentiable(
      r, cudnn ? "CudnnBatchNormBackward0" : "NativeBatchNormBackward0", {ex, ew, eb}, [cudnn, kept](Gradients& g) {
        batch_norm_backward(cudnn ? "cudnn_batch_norm_backward" : "native_batch_norm_backward", cudnn, g, kept);
      });
  return r;
}

}  // namespace vlmest::eager
