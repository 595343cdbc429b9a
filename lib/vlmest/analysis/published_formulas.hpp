// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/unit/units.hpp>

/// Rules of thumb for training memory as they are published, to stand beside an estimate. None of them is used by one.
namespace vlmest::published {

/// What the formulas know of a stack of transformer layers. Counts of tokens, channels, heads, layers; `vocab` is 0
/// for a stack without an output layer.
struct Transformer {
  std::int64_t tokens = 0;    ///< s b: of all sequences
  std::int64_t sequence = 0;  ///< s: of one
  std::int64_t hidden = 0;    ///< h
  std::int64_t heads = 0;     ///< a
  std::int64_t layers = 0;    ///< L
  std::int64_t vocab = 0;     ///< v
};

/// Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (arXiv:2205.05198), eq. 1:
/// s b h (34 + 5 a s / h) bytes of activations a layer, in 16 bits with byte masks of dropout, MLPs of width 4h.
constexpr Bytes layer_activations(const Transformer& t) {
  const std::int64_t scores = checked_mul(checked_mul(5 * t.heads, t.sequence), t.tokens);
  return Bytes(checked_add(checked_mul(checked_mul(34, t.tokens), t.hidden), scores));
}

/// The same with selective recomputation of the attention (section 5): 34 s b h.
constexpr Bytes layer_activations_selective(const Transformer& t) {
  return Bytes(checked_mul(checked_mul(34, t.tokens), t.hidden));
}

/// The same with full recomputation (section 5): the layer's input in 16 bits, 2 s b h.
constexpr Bytes layer_activations_full(const Transformer& t) {
  return Bytes(checked_mul(checked_mul(2, t.tokens), t.hidden));
}

/// What the final norm, the output layer and the fp32 logits add (section 4.3): 4 s b h (1 + v / h); nothing where
/// there is no output layer.
constexpr Bytes output_activations(const Transformer& t) {
  return t.vocab == 0 ? Bytes{} : Bytes(checked_mul(checked_mul(4, t.tokens), checked_add(t.hidden, t.vocab)));
}

/// Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv:1604.06174), section 4.1: L layers in about
/// sqrt(L) segments of equal length keep one input for each segment and, while one of them runs again, all of its
/// activations.
constexpr Bytes sublinear_activations(const Transformer& t) {
  std::int64_t segments = 1;
  while ((segments + 1) * (segments + 1) <= t.layers) ++segments;
  const std::int64_t length = (t.layers + segments - 1) / segments;
  return layer_activations_full(t) * segments + layer_activations(t) * length;
}

/// Rajbhandari et al., ZeRO (arXiv:1910.02054), section 3.1: 16 bytes a trained parameter under mixed precision Adam:
/// fp16 parameter and gradient, fp32 parameter, momentum and variance.
constexpr Bytes zero_states(Elements trained) { return Bytes(checked_mul(16, trained.value())); }

/// Megatron-LM without a distributed optimizer (megatron/training/theoretical_memory_usage.py): 18 bytes, because
/// gradients are kept in fp32.
constexpr Bytes megatron_states(Elements trained) { return Bytes(checked_mul(18, trained.value())); }

/// A parameter that is not trained, in 16 bits.
constexpr Bytes frozen_weights(Elements frozen) { return Bytes(checked_mul(2, frozen.value())); }

}  // namespace vlmest::published
