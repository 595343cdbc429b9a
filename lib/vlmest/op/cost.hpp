// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest {

/// The unit of the device that sets an op's compute ceiling.
enum class Engine : std::uint8_t { idle, tensor_core, cuda_core };

/// What one execution of an op costs. Bytes are the compulsory ones: every operand read once, every result written
/// once, whatever caches hold.
struct Cost {
  Flops flops{};         ///< as torch.utils.flop_counter.FlopCounterMode counts: products, convolutions, attention
                         ///< (dense), transforms; 0 for everything else. Products with stored weights count too,
                         ///< which it does not know (StoredMatmul)
  Flops flops_causal{};  ///< the same with only the visible half of a causal attention
  Flops uncounted{};     ///< arithmetic of products that FlopCounterMode has no formula for: it takes time all the same
  Bytes read{};
  Bytes written{};
  Bytes workspace{};  ///< scratch that the framework takes from its allocator for the duration of the op
  Engine engine = Engine::idle;
  DType dtype = DType::bf16;  ///< the type the engine computes in
  int kernels = 1;            ///< GPU kernels that the op launches
};

/// FLOPs per byte moved; 0 where nothing moves.
constexpr double intensity(const Cost& c) {
  const Bytes b = c.read + c.written;
  return b == Bytes{} ? 0.0 : static_cast<double>(c.flops.value()) / static_cast<double>(b.value());
}

}  // namespace vlmest
