// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/analysis/work.hpp>
#include <vlmest/report/measured_op.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE OpClass op_class(const Op& op) {
  if (std::holds_alternative<Matmul>(op) || std::holds_alternative<GroupedMatmul>(op))
    return {OpKind::linear, "cublaslt"};
  if (const auto* a = std::get_if<Attention>(&op)) return {a->q_len == 1 ? OpKind::decode : OpKind::sdpa, "cudnn"};
  if (std::holds_alternative<AttentionBackward>(op)) return {OpKind::sdpa_backward, "cudnn"};
  if (std::holds_alternative<Convolution>(op)) return {OpKind::convolution, "cudnn"};
  if (std::holds_alternative<Fft>(op)) return {OpKind::fft, "cufft"};
  return {OpKind::memory, "own"};
}

VLMEST_INLINE std::vector<Comparison> compare(const MeasuredOp& m, const Device& device) {
  std::vector<Comparison> out;
  const Cost c = cost(m.op);
  const Bytes moved = c.read + c.written;
  const std::string as = compared_as(m);
  const auto add = [&](const std::string& quantity, Unit unit, double predicted, std::optional<double> measured) {
    if (measured)
      out.push_back(
          {.row = m.name, .quantity = as + quantity, .unit = unit, .predicted = predicted, .measured = *measured});
  };
  const OpKind kind = op_class(m.op).kind;
  const bool small = (kind == OpKind::memory || kind == OpKind::fft) && moved < small_op;
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
