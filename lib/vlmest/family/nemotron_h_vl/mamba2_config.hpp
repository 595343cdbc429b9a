// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/nn/activation.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest {

/// A layer of Mamba-2. transformers 5.17 models/nemotron_h, class NemotronHMamba2Mixer.
struct Mamba2Config {
  std::int64_t hidden = 4096;
  std::int64_t heads = 128;    ///< mamba_num_heads
  std::int64_t head_dim = 64;  ///< mamba_head_dim
  std::int64_t groups = 8;     ///< n_groups: heads of a group share B and C
  std::int64_t state = 128;    ///< ssm_state_size
  std::int64_t taps = 4;       ///< conv_kernel
  std::int64_t chunk = 128;    ///< chunk_size: tokens that are taken together
  bool conv_bias = true;
  bool bias = false;
  Activation activation = Activation::silu;

  std::int64_t inner() const { return checked_mul(heads, head_dim); }
  std::int64_t grouped() const { return checked_mul(groups, state); }
  /// Channels of the convolution: x, B and C.
  std::int64_t channels() const { return checked_add(inner(), checked_mul(grouped(), 2)); }
  /// What in_proj gives: the gate, the convolution's channels and a step for each head.
  std::int64_t projected() const { return checked_add(checked_add(inner(), channels()), heads); }
};

}  // namespace vlmest
