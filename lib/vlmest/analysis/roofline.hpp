// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/device/device.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// What limits an op or a phase.
enum class Bound : std::uint8_t { compute, memory, launch };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Bound>{"compute", "memory", "launch"};

/// FLOPs per byte moved; 0 where nothing moves.
constexpr double intensity(Flops flops, Bytes moved) {
  return moved == Bytes{} ? 0.0 : static_cast<double>(flops.value()) / static_cast<double>(moved.value());
}

/// The three lower limits of an op's time on a device.
struct Roofline {
  Seconds compute{};  ///< FLOPs at the engine's peak
  Seconds memory{};   ///< bytes read and written at the DRAM's bandwidth
  Seconds launch{};   ///< kernels at the device's floor

  constexpr Seconds time() const { return std::max({compute, memory, launch}); }

  /// The largest of the three; of equals, compute before memory before launch.
  constexpr Bound bound() const {
    if (compute >= memory && compute >= launch) return Bound::compute;
    return memory >= launch ? Bound::memory : Bound::launch;
  }
};

/// The roofline of one op (Williams, Waterman, Patterson, CACM 52(4), 2009) with a floor under it: a kernel takes
/// `device.kernel_floor` however little it does (Yang et al., Time-Based Roofline, arXiv 2009.04598).
///
/// `engine` is the type that the arithmetic runs in, `tensor_core` whether it is a product that tensor cores take.
/// Caches are not considered: every byte counts at DRAM's bandwidth. An op without kernels (a view) costs nothing.
/// Throws Error for a type without a rate, and for negative counts.
inline Roofline roofline(Flops flops, Bytes read, Bytes written, DType engine, bool tensor_core, const Device& device,
                         int kernels = 1) {
  if (flops < Flops{} || read < Bytes{} || written < Bytes{} || kernels < 0)
    throw Error("roofline", "negative FLOPs, bytes or kernels", "check the op's dimensions");
  Roofline r;
  if (flops > Flops{}) r.compute = flops / peak(device, engine, tensor_core);
  r.memory = (read + written) / device.dram;
  r.launch = device.kernel_floor * static_cast<double>(kernels);
  return r;
}

}  // namespace vlmest
