// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <vlmest/analysis/dram_traffic.hpp>
#include <vlmest/analysis/work.hpp>
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

/// An operation's class, and the variant that frameworks run: the one that estimates are of.
struct OpClass {
  std::string_view name;
  std::string_view variant;
};

/// Decoding is attention of one query: it moves the cache and computes little.
inline OpClass op_class(const Op& op) {
  if (std::holds_alternative<Matmul>(op) || std::holds_alternative<GroupedMatmul>(op)) return {"linear", "cublaslt"};
  if (const auto* a = std::get_if<Attention>(&op)) return {a->q_len == 1 ? "decode" : "sdpa", "cudnn"};
  if (std::holds_alternative<AttentionBackward>(op)) return {"sdpa_backward", "cudnn"};
  if (std::holds_alternative<Convolution>(op)) return {"convolution", "cudnn"};
  if (std::holds_alternative<Fft>(op)) return {"fft", "cufft"};
  return {"memory", "own"};
}

inline constexpr std::array<std::string_view, 7> op_classes{"linear",      "sdpa", "decode", "sdpa_backward",
                                                            "convolution", "fft",  "memory"};
inline constexpr std::array<std::string_view, 7> op_figures{
    "_time", "_time_hot", "_time_small", "_time_small_hot", "_dram_bytes", "_device_bytes", "_tensor_ops"};

/// Operations that move less are decided by what any kernel takes, not by the bytes.
inline constexpr Bytes small_op{1 << 20};

/// The name under which an operation's figures are compared: its class, and the variant where it is another than the
/// frameworks' ("linear", "sdpa", "sdpa_flash").
inline std::string compared_as(const MeasuredOp& m) {
  const OpClass c = op_class(m.op);
  std::string s(c.name);
  if (!m.variant.empty() && m.variant != c.variant) s += "_" + m.variant;
  return s;
}

/// Everything that was measured of one operation, beside what the library says of it. Quantities are CLASS_time (with
/// _small where a memory-bound op or a transform moves less than 1 MiB, and _hot where operands were in the cache: so
/// they are in the estimate of what moves bytes, not in those of products and attention), CLASS_dram_bytes where
/// operands and results are at least four times the L2 cache, so that it keeps next to nothing of what was there
/// before, CLASS_device_bytes and CLASS_tensor_ops.
inline std::vector<Comparison> compare(const MeasuredOp& m, const Device& device) {
  std::vector<Comparison> out;
  const Cost c = cost(m.op);
  const Bytes moved = c.read + c.written;
  const std::string as = compared_as(m);
  const auto add = [&](const std::string& quantity, Unit unit, double predicted, std::optional<double> measured) {
    if (measured)
      out.push_back(
          {.row = m.name, .quantity = as + quantity, .unit = unit, .predicted = predicted, .measured = *measured});
  };
  const std::string_view kind = op_class(m.op).name;
  const bool small = (kind == "memory" || kind == "fft") && moved < small_op;
  add(std::string("_time") + (small ? "_small" : "") + (m.cold ? "" : "_hot"), Unit::microseconds,
      work(m.op, device, operands(m)).time.us(), m.time_us);
  if (m.cold && moved >= device.l2 * 4) {
    const auto moves = [&](const std::string& quantity, const DramTraffic& t) {
      add(quantity, Unit::bytes, static_cast<double>((t.read + t.written).value()), m.dram_bytes);
    };
    moves("_dram_bytes", dram_traffic(m.op, device));
    const auto* product = std::get_if<Matmul>(&m.op);
    if (product && m.walk) moves("_kernel_dram_bytes", dram_traffic(*product, *m.walk, device));
  }
  add("_device_bytes", Unit::bytes, static_cast<double>(m.peak.value()), m.device_bytes);
  if (c.engine == Engine::tensor_core)
    add("_tensor_ops", Unit::flops, static_cast<double>((c.flops_causal + c.uncounted).value()), m.tensor_ops);
  return out;
}

}  // namespace vlmest
