// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/analysis/dram_traffic.hpp>
#include <vlmest/analysis/op_time.hpp>
#include <vlmest/analysis/roofline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/report/comparison.hpp>

namespace vlmest {

/// A single operation that was measured.
struct MeasuredOp {
  std::string name;     ///< of the benchmark
  std::string variant;  ///< whose kernel ran: cublaslt, cudnn, cufft, own, …; empty where the name does not say
  Op op;
  Bytes peak{};      ///< its operands, results and workspace, each block rounded as the allocator rounds it
  bool cold = true;  ///< operands came from DRAM, not from the L2 cache
  std::optional<double> time_us;
  std::optional<double> dram_bytes;    ///< read and written
  std::optional<double> device_bytes;  ///< most that was allocated for it
  std::optional<TileWalk> walk;        ///< of the product's kernel that ran
  std::optional<double> tensor_ops;    ///< arithmetic operations of the tensor cores, two per multiply-add
};

inline Operands operands(const MeasuredOp& m) { return m.cold ? Operands::from_dram : Operands::from_cache; }

/// What errors are summed up by. Decoding is attention of one query: it moves the cache and computes little.
enum class OpKind : std::uint8_t { linear, sdpa, decode, sdpa_backward, convolution, fft, memory };
template <>
inline constexpr std::array<std::string_view, 7> words_of<OpKind>{"linear",      "sdpa", "decode", "sdpa_backward",
                                                                  "convolution", "fft",  "memory"};

/// An operation's kind, and the variant that frameworks run: the one that estimates are of.
struct OpClass {
  OpKind kind = OpKind::memory;
  std::string_view variant;
};
OpClass op_class(const Op& op);

inline constexpr std::array<std::string_view, 7> op_figures{
    "_time", "_time_hot", "_time_small", "_time_small_hot", "_dram_bytes", "_device_bytes", "_tensor_ops"};

/// Operations that move less are decided by what any kernel takes, not by the bytes.
inline constexpr Bytes small_op{1 << 20};

/// The name under which an operation's figures are compared: its class, and the variant where it is another than the
/// frameworks' ("linear", "sdpa", "sdpa_flash").
inline std::string compared_as(const MeasuredOp& m) {
  const OpClass c = op_class(m.op);
  std::string s(name(c.kind));
  if (!m.variant.empty() && m.variant != c.variant) s += "_" + m.variant;
  return s;
}

/// Everything that was measured of one operation, beside what the library says of it. Quantities are CLASS_time (with
/// _small where a memory-bound op or a transform moves less than 1 MiB, and _hot where operands were in the cache: so
/// they are in the estimate of what moves bytes, not in those of products and attention), CLASS_dram_bytes where
/// operands and results are at least four times the L2 cache, so that it keeps next to nothing of what was there
/// before, CLASS_device_bytes and CLASS_tensor_ops.
std::vector<Comparison> compare(const MeasuredOp& m, const Device& device);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/measured_op.hpp>
#endif
