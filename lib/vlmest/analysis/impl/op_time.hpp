// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <variant>

#include <vlmest/analysis/attention_time.hpp>
#include <vlmest/analysis/fft_time.hpp>
#include <vlmest/analysis/matmul_time.hpp>
#include <vlmest/analysis/op_time.hpp>
#include <vlmest/device/link.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

/// One overload an op; op_time(const Op&, …) chooses.
namespace op_times {

inline OpTime time(const View&, const Device&) { return {}; }
inline OpTime time(const HostSync&, const Device&) { return {}; }

/// Over the link to the other GPUs, whose two directions are used at once.
inline OpTime time(const CollectiveOp& o, const Device& d) {
  if (o.ranks < 2) return {};
  const Seconds over = (o.bytes / peer_link(d)) * ring_traffic(o.kind, o.ranks);
  return {.time = over, .memory = over};
}

inline OpTime time(const MemoryOp& o, const Device& d, Operands operands) {
  const MemoryEfficiencies& e = d.efficiency.memory;
  OpTime t = memory_time(o.read, o.written, walked(o), o.kernels, d, efficiency(e, o.access), operands);
  const Seconds waiting = e.dependent * static_cast<double>(o.dependent);
  t.start += waiting;
  t.time += waiting;
  return t;
}
inline OpTime time(const Matmul& o, const Device& d) { return matmul_time(o, d); }

/// A product whose weight is read as it is stored: the larger of the time of the bytes and of the arithmetic at the
/// rate that products of the activations' type reach.
inline OpTime stored_time(const Cost& c, Elements walked, Flops arithmetic, const Device& d) {
  OpTime t = memory_time(c.read, c.written, walked, c.kernels, d, d.efficiency.memory.contiguous);
  const double rate = efficiency(d.efficiency, Matmul{.n = 64, .k = 64, .dtype = c.dtype}).rate;
  t.compute = arithmetic / peak(d, c.dtype, c.engine == Engine::tensor_core) * (1 / rate);
  t.time = std::max(t.time, t.start + t.compute);
  return t;
}
inline OpTime time(const StoredMatmul& o, const Device& d) {
  const Cost c = cost(o);
  return stored_time(c, elements_in(std::max(c.read, c.written), o.dtype), c.flops, d);
}

/// Each group is a product of its own; they fill the device together, so they count as one batch of equal groups.
inline OpTime time(const GroupedMatmul& o, const Device& d) {
  if (o.stored > Bytes{}) {
    const Cost c = cost(o);
    return stored_time(c, elements_in(std::max(c.read, c.written), o.dtype), c.uncounted, d);
  }
  const std::int64_t groups = std::max<std::int64_t>(1, o.active), rows = std::max<std::int64_t>(1, o.rows / groups);
  const Matmul one = o.per_group ? Matmul{.batch = groups, .m = o.k, .n = o.n, .k = rows, .dtype = o.dtype}
                                 : Matmul{.batch = groups, .m = rows, .n = o.n, .k = o.k, .dtype = o.dtype};
  OpTime t = is_half(o.dtype) ? matmul_time(one, d, d.efficiency.grouped) : matmul_time(one, d);
  const Seconds more = d.efficiency.memory.contiguous.start * static_cast<double>(std::max(0, o.kernels - 1));
  t.start += more;
  t.time += more;
  return t;
}

/// The implicit product of a convolution: positions times channels, over the taps (Chetlur et al., cuDNN, arXiv
/// 1410.0759, section 3). Tensor cores take it from operands that were first converted to channels last, few channels
/// padded to eight, through scratch (conv_scratch); without scratch a 16-bit one runs in fp32.
inline OpTime time(const Convolution& o, const Device& d) {
  const std::int64_t channels = o.in_channels / o.groups;
  const bool half = is_half(o.dtype), converted = half && channels < 8 && o.workspace > Bytes{};
  const Matmul product{.m = checked_mul(o.batch, o.out_positions),
                       .n = o.out_channels,
                       .k = checked_mul(o.kernel, converted ? 8 : channels),
                       .dtype = half && o.workspace == Bytes{} ? DType::fp32 : o.dtype};
  OpTime t = converted                          ? matmul_time(product, d, d.efficiency.converted_convolution)
             : half && !(o.workspace > Bytes{}) ? matmul_time(product, d, d.efficiency.convolution)
                                                : matmul_time(product, d);
  const OpTime copies = memory_time(o.workspace * 2, elements_in(o.workspace, o.dtype),
                                    std::max(0, o.kernels - o.products), d, d.efficiency.memory.strided);
  t.start += copies.start;
  t.memory += copies.time;
  t.time = t.time * static_cast<double>(o.products) + copies.time;
  return t;
}

/// Each result by a kernel whose threads are slower than its bytes, after the copies.
inline OpTime time(const DepthwiseConvolution& o, const Device& d) {
  const DepthwiseEfficiency& e = d.efficiency.depthwise;
  const double channels = static_cast<double>(o.batch) * static_cast<double>(o.channels),
               taps = static_cast<double>(o.taps), in = channels * static_cast<double>(o.in_positions),
               out = channels * static_cast<double>(o.out_positions);
  const Cost c = cost(o);
  const MemoryEfficiencies& m = d.efficiency.memory;
  OpTime t = memory_time((c.read + c.written - o.workspace * 2) * results(o), Elements{}, results(o), d, m.strided);
  if (o.forward) t.compute += (e.result + e.tap * taps) * out;
  if (o.input_gradient) t.compute += (e.input_result + e.input_tap * taps) * in;
  if (o.weight_gradient) t.compute += e.weight_tap * (taps * out);
  const OpTime copies = memory_time(o.workspace * 2, elements_in(o.workspace, o.dtype), o.copies, d, m.transposed);
  t.time = t.start + tiled::overlapped(t.memory, t.compute) + copies.time;
  t.start += copies.start;
  t.memory += copies.memory;
  return t;
}

/// cuBLAS solves 64 rows at a time, and subtracts the product with those solved before from the next ones.
inline OpTime time(const TriangularSolve& o, const Device& d) {
  constexpr std::int64_t block = 64;
  const SolveEfficiency& e = d.efficiency.solve;
  const MemoryEfficiencies& m = d.efficiency.memory;
  const Bytes sides = size_of(Elements(checked_mul(checked_mul(o.batch, o.rows), o.columns)), o.dtype),
              matrices = size_of(Elements(checked_mul(checked_mul(o.batch, o.rows), o.rows)), o.dtype);
  OpTime t = memory_time(sides * 2, elements_in(sides, o.dtype), 1, d, m.transposed);
  const auto then = [&](const OpTime& more) {
    t.start += more.start;
    t.memory += more.memory;
    t.compute += more.compute;
    t.time += more.time;
  };
  if (o.packed) then(memory_time(matrices * 2, elements_in(matrices, o.dtype), 1, d, m.transposed));
  if (o.listed) then(memory_time({}, {}, 2, d, m.contiguous));
  const double systems = static_cast<double>(o.batch) * static_cast<double>(o.columns);
  for (std::int64_t done = 0; done < o.rows; done += block) {
    const auto rows = static_cast<double>(std::min(block, o.rows - done));
    const Seconds threads = (e.element + e.term * rows) * (rows * systems);
    then({.time = tiled::overlapped(e.row * rows, threads), .compute = threads, .start = e.row * rows});
    if (done > 0)
      then(matmul_time(
          {.batch = o.batch, .m = std::min(block, o.rows - done), .n = o.columns, .k = done, .dtype = o.dtype}, d));
  }
  return t;
}

/// The bytes, the blocks' work, and what waits, whichever is longest.
inline OpTime time(const DeltaRule& o, const Device& d) {
  const DeltaRuleKernel& e = efficiency(d.efficiency.delta_rule, o.kind);
  const bool in_turn = o.kind == DeltaRule::Kind::states || o.kind == DeltaRule::Kind::state_gradients;
  const std::int64_t turns = o.kind == DeltaRule::Kind::step ? o.tokens
                             : in_turn                       ? chunks(o)
                                                             : 1,
                     blocks = checked_mul(checked_mul(o.batch, o.heads), chunks(o));
  const double wider = static_cast<double>(work_of(o).macs) / static_cast<double>(work_of({.kind = o.kind}).macs);
  const Cost c = cost(o);
  OpTime t;
  t.start = e.start;
  t.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  t.compute = tiled::overlapped(e.wait * (wider * static_cast<double>(turns)),
                                e.block * (wider * static_cast<double>(blocks) / d.multiprocessors));
  t.time = t.start + tiled::overlapped(t.memory, t.compute);
  return t;
}

inline OpTime time(const Attention& o, const Device& d) { return attention_time(o, d, d.efficiency.attention); }
inline OpTime time(const AttentionBackward& o, const Device& d) { return attention_time(o, d, d.efficiency.attention); }
inline OpTime time(const Norm& o, const Device& d, Operands operands) {
  if (o.fused) return fused_time(o, d, operands);
  const MemoryEfficiencies& e = d.efficiency.memory;
  const Elements n{checked_mul(o.rows, o.width)};
  const Cost c = cost(o);
  const Bytes copied = o.packed ? size_of(n, o.dtype) * 2 : Bytes{};
  OpTime t = memory_time(c.read + c.written - copied, Bytes{}, n, 1, d, e.rows, operands);
  if (o.packed) {
    const OpTime copy = memory_time(copied, n, 1, d, e.transposed);
    t.start += copy.start;
    t.memory += copy.memory;
    t.time += copy.time;
  }
  return t;
}
inline OpTime time(const Softmax& o, const Device& d, Operands operands) {
  if (o.fused) return fused_time(o, d, operands);
  const MemoryEfficiencies& e = d.efficiency.memory;
  const Cost c = cost(o);
  const bool warp = o.width <= warp_softmax_width;
  const auto width = warp ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(o.width))) : o.width;
  return memory_time(c.read, c.written, Elements(checked_mul(o.rows, width)), c.kernels, d,
                     warp ? e.warp_softmax : e.softmax, operands);
}
inline OpTime time(const Fft& o, const Device& d, Operands operands) { return transform_time(o, d, operands); }

}  // namespace op_times

VLMEST_INLINE OpTime op_time(const Op& op, const Device& d, Operands operands) {
  const auto time = [&](const auto& o) {
    if constexpr (requires { op_times::time(o, d, operands); })
      return op_times::time(o, d, operands);
    else
      return op_times::time(o, d);
  };
  return std::visit(time, op);
}

}  // namespace vlmest
