// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/pointwise.hpp>
#include <vlmest/graph/eager/view.hpp>

/// Reductions and scans.
namespace vlmest::eager {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return checked_add(n, to - 1) / to * to; }

/// Shape after reducing `dim`.
inline Shape reduced(Shape s, int dim, bool keepdim) {
  dim = wrap(dim, s.rank());
  if (keepdim) s[dim] = 1; else s.erase(dim);
  return s;
}
inline Value reduce(const char* name, DType out, const Shape& s, Value a, Bytes workspace = {}, int kernels = 1) {
  Builder& b = a.builder();
  const TensorId r = b.result(out, s, name);
  const MemoryOp op{.read = data_bytes(a), .written = size_of(numel(s), out), .workspace = workspace, .dtype = out, .kernels = kernels};
  return emit1(b, name, op, r, {workspace}, a);
}
inline Value mean(Value a, int dim, bool keepdim) {
  const Shape s = reduced(a.shape(), dim, keepdim);
  const DType t = a.dtype();
  return reduce("mean.dim", t, s, std::move(a));
}
/// sum() of booleans: they are converted to int64 first (aten/src/ATen/native/ReduceOps.cpp, sum promotes integral
/// types), then reduced.
inline Value sum_all(Value a) {
  const Bytes cast = a.dtype() == DType::boolean ? size_of(numel(a.shape()), DType::int64) : Bytes{};
  const DType t = a.dtype() == DType::boolean ? DType::int64 : a.dtype();
  return reduce("sum", t, Shape{}, std::move(a), cast, cast > Bytes{} ? 2 : 1);
}
inline Value sum(Value a, int dim, bool keepdim) {
  const Shape s = reduced(a.shape(), dim, keepdim);
  const Bytes cast = a.dtype() == DType::boolean ? size_of(numel(a.shape()), DType::int64) : Bytes{};
  const DType t = a.dtype() == DType::boolean ? DType::int64 : a.dtype();
  return reduce("sum.dim_IntList", t, s, std::move(a), cast, cast > Bytes{} ? 2 : 1);
}

/// Temporary storage of cub::DeviceScan over n elements of the given size: one descriptor per tile of 896 elements
/// (8-byte types; a descriptor is two words of the type) and 32 of padding, two aligned allocations of 256 B
/// (CUB agent_scan tuning for sm_90; confirmed by recorded peaks of cumsum and masked_scatter).
constexpr Bytes scan_workspace(std::int64_t n, int element_size) {
  const std::int64_t tile = element_size >= 8 ? 896 : 1920;
  const std::int64_t tiles = (n + tile - 1) / tile;
  return Bytes(round_up((tiles + 32) * (2 * element_size), 256) + 511);
}
/// cumsum of a vector; other types are first cast to the result's.
inline Value cumsum(Value a, DType out) {
  const bool vector = a.shape().rank() == 1;
  const Bytes cast = a.dtype() == out ? Bytes{} : size_of(numel(a.shape()), out);
  const Bytes scan = vector ? scan_workspace(numel(a.shape()).value(), bits(out) / 8) : Bytes{};
  Builder& b = a.builder();
  const TensorId r = b.result(out, a.shape(), "cumsum");
  const MemoryOp op{.read = data_bytes(a), .written = size_of(numel(a.shape()), out), .workspace = cast + scan, .dtype = out,
                    .kernels = (vector ? 2 : 1) + (cast > Bytes{} ? 1 : 0)};
  return emit1(b, "cumsum", op, r, {cast, scan}, a);
}
/// torch._is_all_true of one boolean: a copy of it on the device, no kernel (recorded).
inline Value is_all_true(Value a) {
  Builder& b = a.builder();
  const TensorId r = b.result(DType::boolean, Shape{}, "_is_all_true");
  return emit1(b, "_is_all_true",
               MemoryOp{.read = Bytes(1), .written = Bytes(1), .dtype = DType::boolean, .kernels = 0}, r, {}, a);
}
/// item(): the host waits for one element.
inline void item(Value a) {
  Builder& b = a.builder();
  const std::array<TensorId, 1> in{a.id()};
  b.emit("_local_scalar_dense", HostSync{size_of(Elements(1), a.dtype())}, in, {});
}

}  // namespace vlmest::eager
