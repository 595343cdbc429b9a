// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/device/efficiency.hpp>
#include <vlmest/library/gpu.hpp>
#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest {

/// Dense peak rates as the vendor states them; products accumulate in fp32 except int8's, which count integer
/// operations. Zero: no such unit.
struct Peaks {
  FlopRate fp32{};  ///< outside the tensor cores
  FlopRate tf32{};
  FlopRate fp16{};
  FlopRate bf16{};
  FlopRate fp8{};
  FlopRate int8{};
};

/// Ceilings read off a running device. They stand beside the datasheet's numbers and replace none of them.
struct MeasuredCeilings {
  std::optional<Bandwidth> dram_copy;  ///< device-to-device copy, bytes read and written both counted
  std::optional<Bandwidth> l2;         ///< the same where all of it stays in the L2 cache, without the launch
  std::optional<FlopRate> bf16;        ///< a large square product of random data
  std::optional<Bandwidth> host_link;  ///< pinned copy, the slower direction
};

/// Host time of torch.utils.checkpoint without reentrance, which is Python, beside what it launches.
struct CheckpointCost {
  Seconds layer{};   ///< its contexts, and the state of the random number generators
  Seconds tensor{};  ///< hooks for each tensor that the layer saves
};

/// Host time of data parallelism's Python and bookkeeping in a forward and its backward, for each trained parameter of
/// DistributedDataParallel, or for each module that fully_shard gathers.
struct DataParallelCost {
  Seconds forward{}, backward{};
};

/// The lowest and the highest value that was found of a figure, in parts of the one that stands for it.
struct Spread {
  double low = 1, high = 1;
};

/// How far times differ from host to host, from model to model and from day to day; and kernels from their estimates.
/// Where a device does not say it, what was found with an H200 and its hosts (models/device/h200-sxm.json).
struct TimeSpread {
  Spread kernels{0.94, 1.14};  ///< of a whole phase, against their estimate
  Spread launch{0.97, 1.56}, forward_launch{0.59, 1.37}, backward_launch{0.57, 1.22};
  Spread attention_plan{0.92, 1.28}, checkpoint{0.5, 2}, optimizer_parameter{0.56, 2.5};
};

/// One GPU. Values only; nothing here depends on a model.
struct Device {
  std::string name;                  ///< the short name that users type
  std::vector<std::string> aliases;  ///< other names that users type
  std::string product;               ///< the vendor's name for it
  std::string vendor;
  std::string architecture;
  int sm = 0;  ///< compute capability, 10 * major + minor
  int multiprocessors = 0;
  Bytes memory_bytes{};  ///< what the CUDA runtime reports as total: cudaMemGetInfo, torch's total_memory
  Bytes usable_bytes{};  ///< what the framework's allocator can reserve once context and kernels are loaded
  Bandwidth dram{};
  Bytes l2{};
  Bandwidth host_link{};  ///< to the host, one direction
  Peaks peaks{};
  Seconds launch{};        ///< host time of one eager launch, the Python of the model's modules included
  Seconds kernel_floor{};  ///< GPU time of the smallest kernel
  /// Host time of a plan that cuDNN's attention builds for a shape that it has not seen; where it is not measured, an
  /// H200's host.
  Seconds attention_plan{36e-3};
  Seconds graph_gap{0.53e-6};  ///< between two kernels of a replayed CUDA graph; likewise
  /// As `launch` in a training step, where autograd takes part: in the forward, which records, and in the backward,
  /// where its engine calls what was recorded; likewise.
  Seconds forward_launch{30.7e-6}, backward_launch{23e-6};
  CheckpointCost checkpoint_forward{160e-6, 8e-6}, checkpoint_backward{190e-6, 6.5e-6};  ///< likewise
  DataParallelCost ddp_parameter{22e-6, 59e-6}, fsdp_module{1.5e-3, 2.4e-3};             ///< likewise
  /// Host time of an attention whose keys and values go round several GPUs, in the forward and in the backward, beyond
  /// its launches: 1.2 and 2.1 ms each, of which 20 and 35 kernels are launched (torch 2.11 on two H100, tiny tensors).
  DataParallelCost ring_attention{0.6e-3, 1.3e-3};
  /// Host time of an optimizer's Python for each parameter, and what it takes more where the parameter is a shard
  /// (DTensor); likewise.
  Seconds optimizer_parameter{16e-6}, optimizer_shard{30e-6};
  TimeSpread spread{};
  MeasuredCeilings measured{};
  Efficiency efficiency{};
  bool calibrated = false;  ///< the efficiencies were measured on such a device
};

/// The facts that libraries choose by.
constexpr Gpu gpu_of(const Device& d) { return {d.sm, d.multiprocessors}; }

/// Puts all of a host's times in `to`, a copy of `d`, at one end of their spread.
inline void put_host_at(Device& to, const Device& d, double Spread::*end) {
  const TimeSpread& s = d.spread;
  const auto scale = [&](Seconds Device::*t, const Spread& by) { to.*t = d.*t * (by.*end); };
  scale(&Device::launch, s.launch);
  scale(&Device::forward_launch, s.forward_launch);
  scale(&Device::backward_launch, s.backward_launch);
  scale(&Device::attention_plan, s.attention_plan);
  for (CheckpointCost Device::*c : {&Device::checkpoint_forward, &Device::checkpoint_backward}) {
    (to.*c).layer = (d.*c).layer * (s.checkpoint.*end);
    (to.*c).tensor = (d.*c).tensor * (s.checkpoint.*end);
  }
  scale(&Device::optimizer_parameter, s.optimizer_parameter);
}

/// Products of this type run on tensor cores of the device.
constexpr bool has_tensor_cores(const Peaks& p, DType t) {
  switch (t) {
    case DType::tf32: return p.tf32 > FlopRate{};
    case DType::fp16: return p.fp16 > FlopRate{};
    case DType::bf16: return p.bf16 > FlopRate{};
    case DType::fp8: return p.fp8 > FlopRate{};
    case DType::int8: return p.int8 > FlopRate{};
    default: return false;
  }
}

/// The rate at which arithmetic in `t` can run at best.
///
/// Outside the tensor cores every type runs at the fp32 rate: PyTorch computes elementwise and reduction kernels of
/// half types in fp32 (aten/src/ATen/OpMathType.h), and half-precision vector units play no part.
///
/// On tensor cores, a type that the device has no unit for falls back to what really runs:
/// - tf32, bf16, fp16 without a unit: the fp32 units. So bf16 on V100 and T4, where cuBLAS converts to fp32.
/// - fp8, int8, int4, nf4, uint8 without a unit: the operands are converted to a half type first, so the rate is that
/// of
///   bf16, or of fp16 where bf16 has no unit, or of fp32.
///
/// Throws Error for fp64 and complex128, which these descriptions do not hold.
constexpr FlopRate peak(const Peaks& p, DType t, bool tensor_core = true) {
  if (t == DType::fp64 || t == DType::complex128)
    throw Error("device.peak", "no double-precision rate is described", "compute in fp32 or a narrower type");
  if (!tensor_core) return p.fp32;
  const FlopRate half = p.bf16 > FlopRate{} ? p.bf16 : p.fp16 > FlopRate{} ? p.fp16 : p.fp32;
  const auto or_else = [](FlopRate own, FlopRate fallback) { return own > FlopRate{} ? own : fallback; };
  switch (t) {
    case DType::tf32: return or_else(p.tf32, p.fp32);
    case DType::fp16: return or_else(p.fp16, p.fp32);
    case DType::bf16: return or_else(p.bf16, p.fp32);
    case DType::fp8: return or_else(p.fp8, half);
    case DType::int8: return or_else(p.int8, half);
    case DType::int4:
    case DType::nf4:
    case DType::uint8: return half;
    default: return p.fp32;
  }
}
inline FlopRate peak(const Device& d, DType t, bool tensor_core = true) { return peak(d.peaks, t, tensor_core); }

/// FLOPs per byte above which an op in `t` is limited by arithmetic (Williams, Waterman, Patterson: Roofline, CACM
/// 52(4), 2009).
inline double ridge(const Device& d, DType t, bool tensor_core = true) {
  return peak(d, t, tensor_core).value / d.dram.value;
}

}  // namespace vlmest
