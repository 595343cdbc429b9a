// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/reduction_config.hpp>
#include <vlmest/graph/eager/view.hpp>

/// Reductions and scans.
namespace vlmest::eager {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return checked_add(n, to - 1) / to * to; }

/// Shape after reducing `dim`.
inline Shape reduced(Shape s, int dim, bool keepdim) {
  dim = wrap(dim, s.rank());
  if (keepdim)
    s[dim] = 1;
  else
    s.erase(dim);
  return s;
}
inline Value reduce(const char* name, DType out, const Shape& s, Value a, Bytes workspace = {}, int kernels = 1,
                    ReductionScratch split = {}) {
  Builder& b = a.builder();
  const TensorId r = b.result(out, s, name);
  const MemoryOp op{.read = data_bytes(a),
                    .written = size_of(numel(s), out),
                    .workspace = workspace + split.partial + split.semaphores,
                    .dtype = out,
                    .kernels = kernels,
                    .access = Access::reduction,
                    .elements = numel(a.shape())};
  return emit1(b, name, op, r, {workspace, split.partial, split.semaphores}, a);
}
inline Value mean(Value a, int dim, bool keepdim) {
  const Shape s = reduced(a.shape(), dim, keepdim);
  const DType t = a.dtype();
  const ReductionScratch split = reduction_scratch(a.tensor(), dim, is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  const GradEdge e = edge(a);
  Value r = reduce("mean.dim", t, s, std::move(a), {}, 1, split);
  // mean_backward: the gradient is expanded and divided at full size.
  differentiable(r, "MeanBackward1", {e}, [whole = e.shape, dim, keepdim](Gradients& g) {
    Value wide = expand(keepdim ? g.in[0] : unsqueeze(g.in[0], dim), whole);
    const DType u = wide.dtype();
    g.out[0] = pointwise("div.Scalar", u, std::move(wide));
  });
  return r;
}
/// sum() of booleans and int32: they are converted to int64 first (aten/src/ATen/native/ReduceOps.cpp, sum promotes
/// integral types), then reduced.
inline bool sums_to_int64(const Value& a) { return a.dtype() == DType::boolean || a.dtype() == DType::int32; }
inline Value sum_all(Value a) {
  const Bytes cast = sums_to_int64(a) ? size_of(numel(a.shape()), DType::int64) : Bytes{};
  const DType t = sums_to_int64(a) ? DType::int64 : autocast_result(a, a.dtype());
  const ReductionScratch split =
      full_reduction_scratch(numel(a.shape()).value(), is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  return reduce("sum", t, Shape{}, std::move(a), cast, cast > Bytes{} ? 2 : 1, split);
}
inline Value sum(Value a, int dim, bool keepdim) {
  const Shape s = reduced(a.shape(), dim, keepdim);
  const Bytes cast = sums_to_int64(a) ? size_of(numel(a.shape()), DType::int64) : Bytes{};
  const DType t = sums_to_int64(a) ? DType::int64 : autocast_result(a, a.dtype());
  const ReductionScratch split = reduction_scratch(a.tensor(), dim, is_half(t) ? 4 : bits(t) / 8, a.builder().gpu);
  const GradEdge e = edge(a);
  Value r = reduce("sum.dim_IntList", t, s, std::move(a), cast, cast > Bytes{} ? 2 : 1, split);
  differentiable(r, "SumBackward1", {e}, [before = e.shape, dim, keepdim](Gradients& g) {
    g.out[0] = expand(keepdim ? g.in[0] : unsqueeze(g.in[0], dim), before);
  });
  return r;
}

/// tensor.all(dim) and tensor.any(dim) of booleans.
inline Value of_booleans(const char* name, Value a, int dim) {
  const Shape s = reduced(a.shape(), dim, false);
  const ReductionScratch split = reduction_scratch(a.tensor(), dim, 1, a.builder().gpu);
  return reduce(name, DType::boolean, s, std::move(a), {}, 1, split);
}
inline Value all_of(Value a, int dim) { return of_booleans("all.dim", std::move(a), dim); }
inline Value any_of(Value a, int dim) { return of_booleans("any.dim", std::move(a), dim); }

/// Temporary storage of cub::DeviceScan over n elements of the given size: one descriptor per tile of 896 elements
/// (8-byte types; a descriptor is two words of the type) and 32 of padding, two aligned allocations of 256 B
/// (CUB agent_scan tuning for sm_90; confirmed by recorded peaks of cumsum and masked_scatter).
constexpr Bytes scan_workspace(std::int64_t n, int element_size) {
  const std::int64_t tile = element_size >= 8 ? 896 : 1920;
  const std::int64_t tiles = (n + tile - 1) / tile;
  return Bytes(round_up((tiles + 32) * (2 * element_size), 256) + 511);
}
/// Temporary storage of cub::DeviceRadixSort::SortPairs over n 8-byte keys and values, `bits` of each key: none (one
/// byte) where one block of 256 threads holds all; else, with 8-bit digits, a second buffer of keys and of values where
/// there are several passes, the digit counts of every pass, a look-back table for each tile of 4608 elements (12 of 8
/// bytes for each of 384 threads), pass counters, each part at a multiple of 256 bytes (cub/device/dispatch/
/// dispatch_radix_sort.cuh, InvokeOnesweep, with its tuning for sm_90; agrees with recorded peaks).
constexpr Bytes radix_sort_workspace(std::int64_t n, int bits = 64) {
  if (n <= 256 * 9) return Bytes(1);
  constexpr std::int64_t digits = 256, tile = 4608;
  const std::int64_t passes = (bits + 7) / 8, buffer = passes > 1 ? round_up(checked_mul(n, 8), 256) : 0;
  const std::int64_t counts = passes * digits * 8, counters = 256,
                     lookback = checked_mul((n + tile - 1) / tile, digits * 4);
  return Bytes(checked_add(255 + counts + counters + lookback, checked_mul(buffer, 2)));
}
/// cumsum over the last dimension; other types are first cast to the result's. A single row is scanned by CUB, several
/// by a kernel without scratch (aten/src/ATen/native/cuda/ScanKernels.cpp).
inline Value cumsum(Value a, DType out) {
  const bool vector = numel(a.shape()).value() == a.size(-1);
  const Bytes cast = a.dtype() == out ? Bytes{} : size_of(numel(a.shape()), out);
  const Bytes scan = vector && a.size(-1) > 0 ? scan_workspace(numel(a.shape()).value(), bits(out) / 8) : Bytes{};
  Builder& b = a.builder();
  const TensorId r = b.result(out, a.shape(), "cumsum");
  const MemoryOp op{.read = data_bytes(a),
                    .written = size_of(numel(a.shape()), out),
                    .workspace = cast + scan,
                    .dtype = out,
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
