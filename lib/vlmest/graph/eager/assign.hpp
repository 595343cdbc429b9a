// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include <vlmest/graph/eager/selection.hpp>

/// Writing into a part of a tensor, as autograd follows it.
namespace vlmest::eager {

/// self.copy_(source) of one type: a kernel, or where both are row-major cudaMemcpyAsync (aten/src/ATen/native/cuda/
/// Copy.cu, copy_device_to_device).
inline Value copy_over(Value self, Value source) {
  if (!is_contiguous(self) || !is_contiguous(source) || self.dtype() != source.dtype())
    return copy_(std::move(self), std::move(source));
  Builder& b = self.builder();
  const Bytes n = data_bytes(source);
  const MemoryOp op{.read = n, .written = n, .dtype = self.dtype(), .kernels = 0};
  return emit_inplace(b, "copy_", op, {}, self, source);
}

/// torch.zeros_like, ones_like, full_like: row-major, or in the order of a's dimensions; of a's type, or of another.
inline Value fill_like(const char* name, const Value& a, DType t) {
  Builder& b = a.builder();
  const TensorId r = b.result(t, a.shape(), strides_like(a.tensor(), a.shape()), name);
  const Bytes n = size_of(numel(a.shape()), t);
  b.emit(name, MemoryOp{.written = n, .dtype = t, .kernels = n > Bytes{} ? 1 : 0}, {}, std::array<TensorId, 1>{r});
  return Value(b, r);
}
inline Value fill_like(const char* name, const Value& a) { return fill_like(name, a, a.dtype()); }
inline Value zeros_like(const Value& a) { return fill_like("zeros_like", a); }
inline Value zeros_like(const Value& a, DType t) { return fill_like("zeros_like", a, t); }
/// torch.empty_like: memory without a kernel, in the order of a's dimensions; of a's type, or of another.
inline Value empty_like(const Value& a, DType t) {
  Builder& b = a.builder();
  const TensorId r = b.result(t, a.shape(), strides_like(a.tensor(), a.shape()), "empty_like");
  b.emit("empty_like", MemoryOp{.dtype = t, .kernels = 0}, {}, std::array<TensorId, 1>{r});
  return Value(b, r);
}
inline Value empty_like(const Value& a) { return empty_like(a, a.dtype()); }

/// part_of(whole) = source, where part_of makes a view, or where the part is all of it gives it back. Backward: a copy
/// of the whole's gradient, of which the part goes to the source and zeros stand in its place, where the whole has a
/// gradient of its own (torch/csrc/autograd/VariableTypeManual.cpp and functions/tensor.cpp, CopySlices, around
/// CopyBackwards, which alone runs where there is no view).
template <class PartOf>
void assign(Value& whole, PartOf part_of, Value source) {
  const GradEdge ew = edge(whole), es = edge(source);
  bool all = false;
  {
    NoGrad off(whole.builder());
    Value part = part_of(whole);
    all = part.id() == whole.id();
    copy_over(std::move(part), std::move(source));
  }
  if (!ew && !es) return;
  if (all) {
    GradCall call{.name = "CopyBackwards", .inputs = {ew, es}, .run = [](Gradients& g) {
                    if (g.wants(0)) g.out[0] = zeros_like(g.in[0]);
                    if (g.wants(1)) g.out[1] = g.in[0];
                  }};
    return whole.builder().differentiable(std::move(call), std::span<const Value>(&whole, 1));
  }
  GradCall call{.name = "CopySlices",
                .inputs = {ew, es},
                .run = [s = whole.shape(), strides = whole.tensor().strides, part_of](Gradients& g) {
                  Builder& b = g.in[0].builder();
                  const DType t = g.in[0].dtype();
                  const TensorId r = b.result(t, s, strides, "new_empty_strided");
                  b.emit("new_empty_strided", MemoryOp{.dtype = t, .kernels = 0}, {}, std::array<TensorId, 1>{r});
                  Value copy(b, r);
                  copy_over(copy, g.in[0]);
                  Value part = clone_contiguous(part_of(copy));
                  Value zeros;
                  if (g.wants(0)) {
                    zeros = zeros_like(part);
                    copy_over(part_of(copy), zeros);
                    g.out[0] = std::move(copy);
                  }
                  if (g.wants(1)) g.out[1] = std::move(part);
                }};
  whole.builder().differentiable(std::move(call), std::span<const Value>(&whole, 1));
}

/// whole[..., at, ...] = source along `dim`.
inline void assign_part(Value& whole, int dim, std::int64_t at, Value source) {
  assign(
      whole, [dim, at](const Value& v) { return select(v, dim, at); }, std::move(source));
}

}  // namespace vlmest::eager
