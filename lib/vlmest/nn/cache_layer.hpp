// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// Keys and values of one decoder layer, [B, kv_heads, tokens, head_dim] each (cache_utils.py, DynamicLayer and
/// DynamicSlidingWindowLayer), or as the run's KvLayout keeps them (nn/kv_cache_steps.hpp); or the states of linear
/// attention, of one size whatever the length (nn/linear_cache.hpp).
struct CacheLayer {
  Value keys;
  Value values;
  Value window_on_device;  ///< a sliding layer's window, which it copies to the device when it is first used
  std::optional<std::int64_t> window;
  std::int64_t seen = 0;      ///< tokens that have passed, kept or not
  bool off = false;           ///< use_cache=False: keys and values are only passed through
  bool fixed = false;         ///< written once and never extended (cross-attention)
  bool preallocated = false;  ///< keys and values are buffers of the model's whole context, written in place
  Value scales;               ///< of a quantised layer: the scales (and zero points) of keys and values
  Value recent_keys;          ///< of a group-quantised layer: the newest tokens, still in the activations' type
  Value recent_values;
  Value index_keys;       ///< of an indexer that chooses what attention sees, [B, 1, tokens, channels] (MiniMax-M3)
  Value conv_state;       ///< of linear attention: the last inputs of its convolution, [B, channels, taps]
  Value recurrent_state;  ///< and its state, [B, heads, key_dim, value_dim]
};

/// The cache of a decoder, one entry per layer that has one; in a model with an encoder one more per layer for what it
/// sees of that, and the encoder's result, which the caller hands to every step.
struct Cache {
  std::vector<CacheLayer> layers;
  Value encoder_states;
  std::vector<Value> held;  ///< what else generate()'s variables hold from the prefill on
};

/// Empty entries of `layers` layers; those that `sliding` names (empty: none) have a window.
inline Cache empty_cache(std::int64_t layers, const std::vector<bool>& sliding = {},
                         std::optional<std::int64_t> window = std::nullopt) {
  Cache r;
  r.layers.resize(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < sliding.size() && i < r.layers.size(); ++i)
    if (sliding[i]) r.layers[i].window = window;
  return r;
}

/// Appends `fresh` to `kept` (or to nothing, which has a type too) by concatenation; the result is a cache entry.
inline Value append(Context& c, const Value& kept, const Value& fresh, const char* label,
                    std::optional<DType> nothing = std::nullopt) {
  using namespace eager;
  Value all;
  if (!kept) {
    Value empty = from_host(c.b, Shape{0}, nothing.value_or(fresh.dtype()));
    all = cat(std::move(empty), fresh, -2);
  } else {
    all = cat(kept, fresh, -2);
  }
  c.b.label(all, label, Role::kv_cache);
  return all;
}

/// The window of a sliding layer, copied to the device when it is first used.
inline void send_window(Context& c, CacheLayer& layer) {
  if (!layer.window || layer.window_on_device) return;
  const TensorId size = c.b.result(DType::int64, Shape{}, "sliding_window");
  c.b.emit("_to_copy", HostSync{Bytes(8)}, {}, std::array<TensorId, 1>{size});
  layer.window_on_device = Value(c.b, size);
}

/// Appends by concatenation: old and new buffers are alive together until the entry is rebound. A sliding layer hands
/// out the full concatenation and keeps its last window - 1 tokens.
inline void update_dense(Context& c, CacheLayer& layer, Value& k, Value& v) {
  using namespace eager;
  layer.seen += k.size(2);
  send_window(c, layer);
  const DType t = k.dtype();  // cache_utils.py, DynamicLayer.lazy_initialization: both have the keys' type
  Value keys = append(c, layer.keys, k, "keys");
  if (!layer.window) layer.keys = keys;
  Value values = append(c, layer.values, v, "values", t);
  if (layer.window) {
    const std::int64_t keep = *layer.window - 1;
    layer.keys = slice(keys, -2, std::max<std::int64_t>(0, keys.size(2) - keep), keys.size(2));
    layer.values = slice(values, -2, std::max<std::int64_t>(0, values.size(2) - keep), values.size(2));
  } else {
    layer.values = values;
  }
  k = std::move(keys);
  v = std::move(values);
}

}  // namespace vlmest
