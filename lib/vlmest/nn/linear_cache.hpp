// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/cache_layer.hpp>

/// What a layer of linear attention keeps of a sequence, whatever its length (transformers 5.17 cache_utils.py,
/// LinearAttentionLayer): the last inputs of its convolution, and its state. No KvLayout changes either.
namespace vlmest {

/// Whether a forward over this entry goes on from an earlier one.
inline bool has_states(const CacheLayer& layer) { return static_cast<bool>(layer.conv_state); }

/// update_conv_state: x[B, channels, S] of a prompt, filled up to `taps` tokens; its last ones are kept. The caller has
/// its variable until this returns.
inline Value update_conv_state(Context& c, CacheLayer& layer, const Value& prompt, std::int64_t taps) {
  using namespace eager;
  Value x = prompt;
  const std::int64_t tokens = x.size(2);
  Value kept = fill(c.b, "zeros", {x.size(0), x.size(1), taps}, x.dtype());
  c.b.label(kept, "conv_state", Role::kv_cache);
  layer.conv_state = kept;
  if (tokens < taps) x = pad(std::move(x), -1, taps - tokens, 0);
  copy_over(std::move(kept), slice(x, 2, x.size(2) - taps, x.size(2)));
  return x;
}

/// update_recurrent_state: the entry is made of zeros at first, then written over.
inline void update_recurrent_state(Context& c, CacheLayer& layer, const Value& state) {
  using namespace eager;
  if (!layer.recurrent_state) {
    Value kept = zeros_like(state);
    c.b.label(kept, "recurrent_state", Role::kv_cache);
    layer.recurrent_state = std::move(kept);
  }
  copy_over(layer.recurrent_state, state);
}

}  // namespace vlmest
