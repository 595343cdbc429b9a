// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <bench/fit/fit_attention.hpp>
#include <bench/fit/fit_few_rows.hpp>
#include <bench/fit/fit_fft.hpp>
#include <bench/fit/fit_matmul.hpp>
#include <bench/fit/fit_memory.hpp>

#include <vlmest/report/measured_op.hpp>

namespace vlmest::fit {

/// How far predictions are from measured times: the mean of |error|, of those that were fitted and of those held out.
struct FitError {
  std::string kind;  ///< of kernel: "half.bytes16", "attention", "memory.rows"
  std::size_t fitted = 0, held_out = 0;
  double fitted_error = 0, held_out_error = 0;
};

struct Calibration {
  Efficiency efficiency;
  std::vector<FitError> errors;  ///< one for each kind that was measured
};

/// The kind of kernel whose parameters an op's time tells; empty where no parameters are fitted.
inline std::string kind_of(const Op& op) {
  if (const auto* o = std::get_if<Matmul>(&op)) {
    switch (o->dtype) {
      case DType::tf32: return "tf32";
      case DType::fp32: return "fp32";
      case DType::fp8:
      case DType::int8: return "fp8";
      default: break;
    }
    if (!is_half(o->dtype)) return "";
    const int row = tiled::row_alignment(*o);
    if (few_rows::runs(*o)) return "half.few_rows";
    return row == 16 ? "half.bytes16" : row >= 4 ? "half.bytes4" : "half.bytes2";
  }
  if (const auto* o = std::get_if<Attention>(&op)) return is_half(o->dtype) ? "attention" : "";
  if (const auto* o = std::get_if<Fft>(&op)) return o->dtype == DType::fp32 ? "transform" : "";
  if (const auto* o = std::get_if<Norm>(&op)) return o->packed ? "" : o->fused ? "memory.fused_norm" : "memory.rows";
  if (const auto* o = std::get_if<Softmax>(&op))
    return o->safe                          ? ""
           : o->fused                       ? "memory.fused_softmax"
           : o->width <= warp_softmax_width ? "memory.warp_softmax"
                                            : "memory.softmax";
  if (const auto* o = std::get_if<MemoryOp>(&op)) return "memory." + std::string(name(o->access));
  return "";
}

namespace detail {

inline MatmulEfficiency* matmul_parameters(Efficiency& e, const std::string& kind) {
  const std::map<std::string, MatmulEfficiency*> all{{"half.bytes16", &e.half.bytes16},
                                                     {"half.bytes4", &e.half.bytes4},
                                                     {"half.bytes2", &e.half.bytes2},
                                                     {"tf32", &e.tf32},
                                                     {"fp8", &e.fp8},
                                                     {"fp32", &e.fp32}};
  const auto found = all.find(kind);
  return found == all.end() ? nullptr : found->second;
}
/// Where the parameters of a kind of kernel that moves bytes are; nullptr for other kinds.
inline MemoryEfficiency MemoryEfficiencies::*memory_parameters(const std::string& kind) {
  if (kind == "memory.softmax") return &MemoryEfficiencies::softmax;
  if (kind == "memory.warp_softmax") return &MemoryEfficiencies::warp_softmax;
  constexpr std::string_view memory = "memory.";
  if (!kind.starts_with(memory)) return nullptr;
  const auto access = value_of<Access>(std::string_view(kind).substr(memory.size()));
  return access ? of_access[static_cast<std::size_t>(*access)] : nullptr;
}

inline void fit_kind(Efficiency& e, const std::string& kind, const std::vector<const MeasuredOp*>& samples,
                     const Device& d) {
  const auto time = [](const MeasuredOp& m) { return Seconds{*m.time_us * 1e-6}; };
  Device fitted = d;  // with the kinds before this one: their names sort so that the fused kernels come first
  fitted.efficiency.memory = e.memory;
  if (MatmulEfficiency* p = matmul_parameters(e, kind)) {
    std::vector<MatmulSample> s;
    for (const MeasuredOp* m : samples) s.push_back({std::get<Matmul>(m->op), time(*m)});
    *p = fit_matmul(s, d, *p);
  } else if (kind == "half.few_rows") {
    std::vector<MatmulSample> s;
    for (const MeasuredOp* m : samples) s.push_back({std::get<Matmul>(m->op), time(*m)});
    e.half.few_rows = fit_few_rows(s, d, e.half.few_rows);
  } else if (kind == "transform") {
    std::vector<FftSample> s;
    for (const MeasuredOp* m : samples) s.push_back({std::get<Fft>(m->op), operands(*m), time(*m)});
    e.fft = fit_fft(s, fitted);
  } else if (kind.starts_with("memory.")) {
    std::vector<MemorySample> s;
    for (const MeasuredOp* m : samples) s.push_back({m->op, operands(*m), time(*m)});
    if (kind == "memory.fused_norm")
      e.memory.fused_norm = fit_memory(s, fitted, &MemoryEfficiencies::fused_norm);
    else if (kind == "memory.fused_softmax")
      e.memory.fused_softmax = fit_memory(s, fitted, &MemoryEfficiencies::fused_softmax);
    else if (MemoryEfficiency MemoryEfficiencies::*q = memory_parameters(kind))
      e.memory.*q = fit_memory(s, fitted, q);
  } else {
    std::vector<AttentionSample> s;
    for (const MeasuredOp* m : samples) s.push_back({std::get<Attention>(m->op), time(*m)});
    e.attention = fit_attention(s, d, e.attention);
  }
}

}  // namespace detail

/// Fits the efficiencies of a device to measured operations. Of each kind every fifth is first held out and only
/// predicted, which gives the errors; what is returned is then fitted to all.
/// Kinds that were not measured keep the device's parameters. Kernels that frameworks do not run do not count, nor do
/// operations whose operands were in the cache where those of a run come from DRAM (products and attention).
inline Calibration calibrate(const std::vector<MeasuredOp>& measured, const Device& d) {
  std::map<std::string, std::vector<const MeasuredOp*>> by_kind;
  for (const MeasuredOp& m : measured) {
    const std::string kind = kind_of(m.op);
    const OpClass c = op_class(m.op);
    if (kind.empty() || !m.time_us || *m.time_us <= 0 || (!m.variant.empty() && m.variant != c.variant)) continue;
    // What moves bytes is predicted with its operands on either side of the cache, and needs both.
    if (!m.cold && !kind.starts_with("memory.") && kind != "transform") continue;
    by_kind[kind].push_back(&m);
  }
  Calibration r{d.efficiency, {}};
  Device fitted = d;
  for (const auto& [kind, samples] : by_kind) {
    std::vector<const MeasuredOp*> used, held;
    for (std::size_t i = 0; i < samples.size(); ++i) (i % 5 == 4 ? held : used).push_back(samples[i]);
    detail::fit_kind(r.efficiency, kind, used, d);
    fitted.efficiency = r.efficiency;
    const auto error = [&](const std::vector<const MeasuredOp*>& list) {
      double sum = 0;
      for (const MeasuredOp* m : list)
        sum += std::abs(op_time(m->op, fitted, operands(*m)).time.us() / *m->time_us - 1);
      return list.empty() ? 0.0 : sum / static_cast<double>(list.size());
    };
    r.errors.push_back({kind, used.size(), held.size(), error(used), error(held)});
    detail::fit_kind(r.efficiency, kind, samples, d);
  }
  return r;
}

}  // namespace vlmest::fit
