// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/plan/plan.hpp>
#include <vlmest/tensor/tensor.hpp>

namespace vlmest {

/// Bytes of state that an optimizer keeps on the GPU for one parameter, in the parameter's type where not said
/// otherwise. `embedding`: whether it is the weight of an embedding module.
/// - adamw: two moments; the step count lives on the host (torch/optim/adamw.py, _init_group).
/// - adamw_fused: two moments and an fp32 step count.
/// - adamw_8bit: two moments of one byte an element with an fp32 scale for every 256 of them; parameters of fewer than
///   4,096 elements keep two fp32 moments (bitsandbytes, optim/optimizer.py, init_state). The two code books that all
///   parameters share, 2 KiB, are left out.
/// - adamw_bnb_8bit: the same, but embeddings keep two fp32 moments (transformers/trainer.py, create_optimizer).
/// - sgd: nothing; sgd_momentum: one buffer.
/// - adafactor: a row and a column of the last two dimensions, or one vector, and the root mean square, in fp32
///   (transformers/optimization.py, Adafactor.step).
inline Bytes optimizer_bytes(Optimizer o, const Tensor& p, bool embedding) {
  const Elements n = p.storage;
  const Bytes own = size_of(n, p.dtype);
  switch (o) {
    case Optimizer::adamw: return own * 2;
    case Optimizer::adamw_fused: return own * 2 + size_of(Elements(1), DType::fp32);
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_bnb_8bit:
      if (keeps_fp32_moments(o, n.value(), embedding)) return size_of(n, DType::fp32) * 2;
      return (size_of(n, DType::uint8) + size_of(Elements((n.value() + 255) / 256), DType::fp32)) * 2;
    case Optimizer::sgd: return Bytes{};
    case Optimizer::sgd_momentum: return own;
    case Optimizer::adafactor: {
      const Elements rms{1};
      if (p.shape.rank() < 2) return size_of(n + rms, DType::fp32);
      const Elements rows{n.value() / p.shape[-1]}, columns{n.value() / p.shape[-2]};
      return size_of(rows + columns + rms, DType::fp32);
    }
  }
  return Bytes{};
}

}  // namespace vlmest
